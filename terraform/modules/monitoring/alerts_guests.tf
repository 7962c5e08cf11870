# Alerts for symptoms of guest requests: errors, cache, limits, bots, handoffs, instances.
locals {
  # A ratio of few requests is random, so every ratio alert also needs this condition.
  min_traffic = {
    title  = "enough requests for a ratio"
    filter = local.requests
    align  = "ALIGN_RATE"
    above  = var.thresholds.min_requests_per_second
  }

  # A policy has at most six conditions, so functions with the same max_instances share a condition.
  limits = { for f in var.functions : f.max_instances => f.service... if contains(["public", "internal"], f.kind) }

  # Alerts on a ratio. The denominator is all guest requests unless `over` names another.
  shares = {
    client-errors = {
      title    = "Many requests are rejected with 4xx"
      severity = "ticket"
      runbook  = "availability"
      share    = { filter = "${local.requests} AND metric.label.response_code_class=\"4xx\"", above = var.thresholds.client_errors_share, duration = "900s" }
    }

    cache-hits-low = {
      title    = "The cache hit ratio is below its target"
      severity = "ticket"
      runbook  = "cache"
      share    = merge(local.hits, { period = "3600s", below = var.thresholds.cache_hits_target, duration = "21600s" })
    }

    cache-hits-failing = {
      title    = "The cache hit ratio is very low"
      severity = "page"
      runbook  = "cache"
      share    = merge(local.hits, { below = var.thresholds.cache_hits_failing, duration = "1800s" })
    }

    upstream-degraded = {
      title    = "Responses lack a part"
      severity = "ticket"
      runbook  = "upstream"
      share    = { filter = local.metric.degraded, above = var.thresholds.degraded_share, duration = "900s" }
    }

    bots = {
      title    = "Many clients are classified as bots"
      severity = "ticket"
      runbook  = "bots"
      share    = { filter = local.metric.suspected, above = var.thresholds.bots_share, duration = "1800s" }
    }

    limits = {
      title    = "Many requests exceed a rate limit"
      severity = "ticket"
      runbook  = "limits"
      share    = { filter = local.metric.limited, above = var.thresholds.limited_share, duration = "900s" }
    }
  }

  hits = { filter = "${local.searches} AND metric.label.state=one_of(\"HIT\",\"STALE\")", over = local.searches }

  share_alerts = { for name, s in local.shares : name => {
    title      = s.title
    severity   = s.severity
    runbook    = s.runbook
    combiner   = "AND"
    conditions = [local.min_traffic, merge({ over = local.requests, align = "ALIGN_RATE" }, s.share)]
  } }

  guest_alerts = {
    endpoint-unreachable = {
      title    = "The public endpoint does not answer"
      severity = "page"
      runbook  = "endpoint-unreachable"
      conditions = [{
        filter = join(" AND ", [
          "metric.type=\"monitoring.googleapis.com/uptime_check/check_passed\" AND resource.type=\"uptime_url\"",
          "metric.label.check_id=\"${google_monitoring_uptime_check_config.endpoint.uptime_check_id}\"",
        ])
        align    = "ALIGN_NEXT_OLDER"
        period   = "1200s"
        reduce   = "REDUCE_COUNT_FALSE"
        above    = 1 # ignore a failure in a single region
        duration = "120s"
      }]
    }

    upstream-breaker = {
      title      = "A circuit breaker to an upstream is open"
      severity   = "page"
      runbook    = "upstream"
      conditions = [{ filter = local.metric.breaker_open, above = var.thresholds.breaker_refusals, duration = "300s" }]
    }

    # A valid, unexpired token without a ledger row. Every minted token has a row.
    handoff-unknown = {
      title      = "A valid handoff token is not in the ledger"
      severity   = "page"
      runbook    = "handoff"
      conditions = [{ filter = local.metric.unminted, above = 0 }]
    }

    handoff-forged = {
      title      = "Handoff tokens are forged"
      severity   = "page"
      runbook    = "handoff"
      conditions = [{ filter = local.metric.forged, period = "600s", above = var.thresholds.handoffs_forged }]
    }

    handoff-replayed = {
      title      = "Handoff tokens are used twice"
      severity   = "ticket"
      runbook    = "handoff"
      conditions = [{ filter = local.metric.replayed, period = "3600s", above = var.thresholds.handoffs_replayed }]
    }

    instances = {
      title    = "A function reaches its maximum number of instances"
      severity = "ticket"
      runbook  = "instances"
      conditions = [for most, services in local.limits : {
        title = "${most} active instances"
        filter = join(" AND ", [
          "metric.type=\"run.googleapis.com/container/instance_count\" AND metric.label.state=\"active\"",
          "resource.type=\"cloud_run_revision\"",
          "resource.label.service_name=one_of(${join(",", formatlist("\"%s\"", services))})",
        ])
        align    = "ALIGN_MAX"
        by       = ["resource.label.service_name"]
        above    = most - 0.5
        duration = "600s"
      }]
    }

    # Cloud Run answers these requests with 429 or 500. The objectives do not count the 429
    # responses.
    no-instance = {
      title      = "Requests find no instance"
      severity   = "page"
      runbook    = "instances"
      conditions = [{ filter = local.metric.no_instance, above = 10, duration = "60s" }]
    }

    startup-failed = {
      title      = "A function does not start"
      severity   = "page"
      runbook    = "startup-failed"
      conditions = [{ filter = local.metric.does_not_open, by = ["metric.label.function"], above = 0 }]
    }

    panics = {
      title      = "A request panicked"
      severity   = "ticket"
      runbook    = "panics"
      conditions = [{ filter = local.metric.panics, by = ["metric.label.function"], above = 0 }]
    }

    flags-stale = {
      title      = "Feature flags cannot be read"
      severity   = "ticket"
      runbook    = "flags"
      conditions = [{ filter = local.metric.flags_stale, period = "600s", above = 0, duration = "1800s" }]
    }
  }
}

# Calls the API from several regions as a guest's page does. A 429 (rate limit or bot policy) counts
# as success. 403 and 404 count as failure: every guest receives them while the edge's secret, the
# gateway's right to call or the gateway's routes are wrong.
resource "google_monitoring_uptime_check_config" "endpoint" {
  display_name = "bff-consumer ${var.environment}: public endpoint"
  timeout      = "10s"
  period       = "300s"

  http_check {
    path         = "/bff/consumer/v1/facets?country=AF&locale=en&currency=AFN"
    port         = 443
    use_ssl      = true
    validate_ssl = true

    accepted_response_status_codes {
      status_class = "STATUS_CLASS_2XX"
    }

    accepted_response_status_codes {
      status_value = 429
    }
  }

  monitored_resource {
    type   = "uptime_url"
    labels = { host = var.host, project_id = var.project }
  }
}
