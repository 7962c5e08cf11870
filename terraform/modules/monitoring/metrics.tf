# Log-based metrics. They count the log record of each request and a few separate warnings
# (shared/web/log.go). Cloud Logging extracts httpRequest and severity from a record; the other
# fields are its jsonPayload. Field names never change, because functions may be older than this
# file during a rollout.
locals {
  tick  = "jsonPayload.function=\"Relay\""
  relay = "${local.tick} AND httpRequest.status=200" # a failed run has no report
  late  = "jsonPayload.message=\"outbox: undelivered events\""

  # Counters: `of` filters the records, labels are extracted from fields.
  counters = {
    cache_answers = {
      of     = "jsonPayload.cache:*"
      labels = { state = "jsonPayload.cache", function = "jsonPayload.function" }
    }
    degraded = {
      of     = "jsonPayload.degraded:*"
      labels = { function = "jsonPayload.function" }
    }
    # Search logs a list of missing parts with a reason each, a handoff logs the reason of its
    # single part, and a rejected request has the reason in its error.
    breaker_open = {
      of     = "jsonPayload.degraded.reason=\"breaker-open\" OR jsonPayload.degraded=\"breaker-open\" OR jsonPayload.err:\"breaker-open\""
      labels = { function = "jsonPayload.function" }
    }
    limited = {
      of     = "jsonPayload.limited:*"
      labels = { policy = "jsonPayload.limited" }
    }
    suspected      = { of = "jsonPayload.bot:*" } # a verdict worse than human, in mode observe too
    forged         = { of = "jsonPayload.function=\"Consume\" AND jsonPayload.err=~\"^HANDOFF_SIGNATURE_INVALID\"" }
    replayed       = { of = "jsonPayload.function=\"Consume\" AND jsonPayload.err=~\"^HANDOFF_REPLAYED\"" }
    unminted       = { of = "jsonPayload.function=\"Consume\" AND jsonPayload.err=~\"^HANDOFF_NOT_FOUND\"" }
    minted         = { of = "jsonPayload.function=\"Handoff\" AND httpRequest.status=201" }
    consumed       = { of = "jsonPayload.function=\"Consume\" AND httpRequest.status=200" }
    sessions_lost  = { of = "jsonPayload.session=\"degraded\" OR jsonPayload.sessionNotSaved:*" }
    telemetry_lost = { of = "jsonPayload.telemetryLost:*" }
    spill_waits    = { of = "jsonPayload.message=\"outbox: the buffer cannot be drained\" OR jsonPayload.message=\"outbox: rejected buffered rows are set aside\"" }
    outbox_late    = { of = "${local.late} AND jsonPayload.oldestAgeSeconds>${var.thresholds.outbox_late_seconds}" }
    outbox_parked  = { of = "${local.late} AND jsonPayload.parked>${var.thresholds.outbox_parked_known}" }
    relay_in_time  = { of = "${local.relay} AND jsonPayload.relay.oldestAgeSeconds<=${var.thresholds.outbox_slow_seconds}" }
    relay_slow     = { of = "${local.tick} AND (httpRequest.status!=200 OR jsonPayload.relay.oldestAgeSeconds>${var.thresholds.outbox_slow_seconds})" }
    relay_deep     = { of = "${local.relay} AND jsonPayload.relay.depth>${var.thresholds.outbox_depth}" }
    flags_stale    = { of = "jsonPayload.message=\"flags kept their last good values\"" }
    panics         = { of = "jsonPayload.stack:*", labels = { function = "jsonPayload.function" } }
    # Cloud Run's message for a request without an instance. The functions write no record then.
    no_instance     = { of = "textPayload:\"no available instance\"" }
    does_not_open   = { of = "jsonPayload.message=~\"^cannot start \"", labels = { function = "jsonPayload.function" } }
    alarms          = { of = "jsonPayload.alarm:*", labels = { alarm = "jsonPayload.alarm", function = "jsonPayload.function" } }
    events_received = { of = "jsonPayload.outcome:*", labels = { outcome = "jsonPayload.outcome", function = "jsonPayload.function" } }
    job_successes   = { of = "${local.job} AND httpRequest.status=200", labels = { function = "jsonPayload.function" } }
    job_failures    = { of = "${local.job} AND httpRequest.status!=200", labels = { function = "jsonPayload.function" } }
  }
  job   = "jsonPayload.function=(${join(" OR ", [for name in sort(var.jobs) : "\"${var.functions[name].entry}\""])})"
  sweep = "jsonPayload.function=(${join(" OR ", [for name in sort(var.jobs) : "\"${var.functions[name].entry}\"" if name != "relay"])})"

  # Distributions of the numbers in a field. The relay reports once a minute.
  distributions = {
    outbox_age       = { of = local.relay, value = "jsonPayload.relay.oldestAgeSeconds", unit = "s" }
    outbox_depth     = { of = local.relay, value = "jsonPayload.relay.depth", unit = "1" }
    outbox_published = { of = local.relay, value = "jsonPayload.relay.published", unit = "1" }
    outbox_refused   = { of = local.relay, value = "jsonPayload.relay.refused", unit = "1" }
    outbox_outages   = { of = local.relay, value = "jsonPayload.relay.outages", unit = "1" }
    outbox_parked_at = { of = local.relay, value = "jsonPayload.relay.parked", unit = "1" }
    swept            = { of = "${local.sweep}", value = "jsonPayload.removed", unit = "1", labels = { function = "jsonPayload.function" } }
  }

  # Metric filters for alerts and dashboards, by metric.
  metric = { for name, m in merge(google_logging_metric.counter, google_logging_metric.distribution) :
  name => "metric.type=\"logging.googleapis.com/user/${m.name}\" AND resource.type=\"cloud_run_revision\"" }

  ours = "resource.type=\"cloud_run_revision\" AND resource.labels.service_name=~\"^bff-consumer-\""
}

resource "google_logging_metric" "counter" {
  for_each = local.counters

  name             = "bff_consumer_${each.key}"
  filter           = "${local.ours} AND (${each.value.of})"
  label_extractors = { for label, field in try(each.value.labels, {}) : label => "EXTRACT(${field})" }

  metric_descriptor {
    metric_kind = "DELTA"
    value_type  = "INT64"
    unit        = "1"

    dynamic "labels" {
      for_each = try(each.value.labels, {})

      content {
        key        = labels.key
        value_type = "STRING"
      }
    }
  }
}

resource "google_logging_metric" "distribution" {
  for_each = local.distributions

  name             = "bff_consumer_${each.key}"
  filter           = "${local.ours} AND (${each.value.of})"
  value_extractor  = "EXTRACT(${each.value.value})"
  label_extractors = { for label, field in try(each.value.labels, {}) : label => "EXTRACT(${field})" }

  metric_descriptor {
    metric_kind = "DELTA"
    value_type  = "DISTRIBUTION"
    unit        = each.value.unit

    dynamic "labels" {
      for_each = try(each.value.labels, {})

      content {
        key        = labels.key
        value_type = "STRING"
      }
    }
  }

  # From 1 to about ten million; each bucket is twice as wide as the previous.
  bucket_options {
    exponential_buckets {
      num_finite_buckets = 24
      growth_factor      = 2
      scale              = 1
    }
  }
}
