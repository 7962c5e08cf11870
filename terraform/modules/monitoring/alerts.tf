# One alert policy for each entry of the local alert maps. Fields of an entry:
#   title       the symptom
#   severity    page: wakes the person on call; ticket: waits for the morning
#   runbook     file in docs/runbooks, without .md
#   combiner    OR by default; AND if all conditions must hold
#   conditions  list of conditions. Fields of a condition:
#     filter        the metric
#     above, below  the threshold
#     over          for a ratio: the filter of the denominator
#     absent        instead of a threshold: the condition holds if no data arrives for this long
#     period, align alignment of the time series
#     by            fields that keep time series separate
#     duration      how long the condition must hold
locals {
  alerts = merge(local.burn_alerts, local.share_alerts, local.guest_alerts, local.event_alerts, local.job_alerts, local.store_alerts)

  # Defaults of a condition.
  condition_defaults = { align = "ALIGN_DELTA", period = "300s", reduce = "REDUCE_SUM", by = [], duration = "0s" }
}

resource "google_monitoring_alert_policy" "this" {
  for_each = local.alerts

  display_name          = "bff-consumer ${var.environment}: ${each.value.title}"
  combiner              = try(each.value.combiner, "OR")
  severity              = each.value.severity == "page" ? "CRITICAL" : "WARNING"
  notification_channels = local.notification_channels[each.value.severity]

  user_labels = {
    alert    = each.key
    runbook  = each.value.runbook
    severity = each.value.severity
  }

  dynamic "conditions" {
    for_each = [for c in each.value.conditions : c if !can(c.absent)]

    content {
      display_name = try(conditions.value.title, each.value.title)

      condition_threshold {
        filter             = conditions.value.filter
        denominator_filter = try(conditions.value.over, null)
        comparison         = can(conditions.value.above) ? "COMPARISON_GT" : "COMPARISON_LT"
        threshold_value    = try(conditions.value.above, conditions.value.below)
        duration           = try(conditions.value.duration, local.condition_defaults.duration)

        dynamic "aggregations" {
          for_each = startswith(conditions.value.filter, "select_slo_burn_rate") ? [] : [merge(local.condition_defaults, conditions.value)]

          content {
            alignment_period     = aggregations.value.period
            per_series_aligner   = aggregations.value.align
            cross_series_reducer = aggregations.value.reduce
            group_by_fields      = aggregations.value.by
          }
        }

        dynamic "denominator_aggregations" {
          for_each = can(conditions.value.over) ? [merge(local.condition_defaults, conditions.value)] : []

          content {
            alignment_period     = denominator_aggregations.value.period
            per_series_aligner   = denominator_aggregations.value.align
            cross_series_reducer = denominator_aggregations.value.reduce
            group_by_fields      = denominator_aggregations.value.by
          }
        }

        trigger {
          count = 1
        }
      }
    }
  }

  dynamic "conditions" {
    for_each = [for c in each.value.conditions : c if can(c.absent)]

    content {
      display_name = "${each.value.title}: no data"

      condition_absent {
        filter   = conditions.value.filter
        duration = conditions.value.absent

        aggregations {
          alignment_period     = conditions.value.period
          per_series_aligner   = "ALIGN_DELTA"
          cross_series_reducer = "REDUCE_SUM"
        }

        trigger {
          count = 1
        }
      }
    }
  }

  alert_strategy {
    auto_close = "86400s"
  }

  lifecycle {
    precondition {
      condition     = length(each.value.conditions) <= 6
      error_message = "${each.key} has ${length(each.value.conditions)} conditions, but a policy allows six: set the same max_instances for more functions."
    }
  }

  documentation {
    mime_type = "text/markdown"
    subject   = "[${each.value.severity}] ${var.environment}: ${each.value.title}"
    content   = "${each.value.title}.\n\nRunbook: docs/runbooks/${each.value.runbook}.md"

    dynamic "links" {
      for_each = var.runbooks_url == null ? [] : [var.runbooks_url]

      content {
        display_name = "Runbook"
        url          = "${links.value}/${each.value.runbook}.md"
      }
    }
  }
}
