# Alert thresholds and recipients: the monitoring module alone, then the root module with invalid
# values.
mock_provider "google" {
  source          = "./tests/mocks/google"
  override_during = plan
}

mock_provider "google-beta" {
  source          = "./tests/mocks/google-beta"
  override_during = plan
}

# Filters of alerts contain ids that are known only after apply, so valid cases run apply against
# the mock providers. The variables are those of the root module and of the monitoring module; each
# run uses the variables that its module declares.
variables {
  environment = "production"

  host = "api.example.com"
  functions = {
    search       = { entry = "Search", kind = "public", service = "s-search", max_instances = 10 }
    detail       = { entry = "Detail", kind = "public", service = "s-detail", max_instances = 10 }
    handoff      = { entry = "Handoff", kind = "public", service = "s-handoff", max_instances = 4 }
    relay        = { entry = "Relay", kind = "job", service = "s-relay", max_instances = 1 }
    sweep-outbox = { entry = "SweepOutbox", kind = "job", service = "s-sweep", max_instances = 1 }
  }
  jobs                  = ["relay", "sweep-outbox"]
  event_dead_letters    = ["e.dlq"]
  job_dead_letters      = ["j.dlq"]
  event_subscriptions   = ["e"]
  rotation_subscription = "rotation"
  redis                 = "r"
  postgres              = { name = "p", max_connections = 400 }
  channels              = { page_emails = ["a@ghasi.io", "b@ghasi.io"], ticket_emails = ["a@ghasi.io"], page = ["projects/p/notificationChannels/1"] }
}

run "objectives" {
  command = apply

  module {
    source = "./modules/monitoring"
  }

  assert {
    condition = jsonencode({ for name, slo in google_monitoring_slo.latency : name => [slo.goal, slo.request_based_sli[0].distribution_cut[0].range[0].max] }) == jsonencode({
      search-p95 = [0.95, 600], search-p99 = [0.99, 1100], detail-p95 = [0.95, 500], handoff-p99 = [0.99, 250]
    })
    error_message = "A latency objective differs from docs/spec/limits.md#service-level-objectives."
  }

  assert {
    condition = jsonencode({ for name, slo in google_monitoring_slo.ratio : name => slo.goal }) == jsonencode({
      availability = 0.999, cache-hits = 0.6, detail-availability = 0.999, handoff-availability = 0.999, search-availability = 0.999, telemetry = 0.9999
    })
    error_message = "An objective differs from docs/spec/limits.md#service-level-objectives."
  }

  assert {
    condition     = alltrue([for slo in merge(google_monitoring_slo.latency, google_monitoring_slo.ratio) : slo.rolling_period_days == 28])
    error_message = "An objective does not cover 28 days."
  }
}

run "burn_rate_alerts" {
  command = apply

  module {
    source = "./modules/monitoring"
  }

  assert {
    condition = alltrue([for name in concat([for of in ["", "search-", "detail-", "handoff-"] : "${of}availability"], ["search-p95", "search-p99", "detail-p95", "handoff-p99"]) : alltrue([
      for pace, want in { fast = ["3600s 14.4", "300s 14.4"], slow = ["21600s 6", "1800s 6"] } :
      [for c in google_monitoring_alert_policy.this["${name}-burns-${pace}"].conditions :
        "${regex("[0-9]+s", split(", ", c.condition_threshold[0].filter)[1])} ${c.condition_threshold[0].threshold_value}"
      if startswith(c.condition_threshold[0].filter, "select_slo_burn_rate")] == want
    ])])
    error_message = "Burn-rate alerts must use 14.4 over one hour and 5 minutes, and 6 over six hours and 30 minutes."
  }

  assert {
    condition = alltrue([for of in ["", "search-", "detail-", "handoff-"] : alltrue([for pace, period in { fast = "3600s", slow = "21600s" } :
      [for c in google_monitoring_alert_policy.this["${of}availability-burns-${pace}"].conditions :
        "${c.condition_threshold[0].aggregations[0].alignment_period} ${c.condition_threshold[0].threshold_value}"
      if strcontains(c.condition_threshold[0].filter, "\"5xx\"")] == ["${period} 10"]
    ])])
    error_message = "An availability alert must need more than ten failed requests."
  }

  assert {
    condition     = strcontains(google_monitoring_slo.ratio["handoff-availability"].request_based_sli[0].good_total_ratio[0].bad_service_filter, "=one_of(\"s-handoff\") AND")
    error_message = "Handoffs must have their own availability objective."
  }

  assert {
    condition     = alltrue([for name, a in google_monitoring_alert_policy.this : a.combiner == "AND" if strcontains(name, "-burns-")])
    error_message = "A burn-rate alert must require both windows."
  }
}

run "uptime_check" {
  command = apply

  module {
    source = "./modules/monitoring"
  }

  # Every guest receives 403 or 404 while the edge's secret or the gateway is wrong.
  assert {
    condition = [for c in google_monitoring_uptime_check_config.endpoint.http_check[0].accepted_response_status_codes :
    c.status_class == null ? tostring(c.status_value) : c.status_class] == ["STATUS_CLASS_2XX", "429"]
    error_message = "The uptime check must accept only 2xx and 429."
  }
}

run "thresholds" {
  command = apply

  module {
    source = "./modules/monitoring"
  }

  assert {
    condition = alltrue([for name, want in {
      cache-hits-low      = "< 0.6", cache-hits-failing = "< 0.4", redis-memory = "> 0.8", postgres-connections = "> 320", postgres-disk = "> 0.85",
      dead-letters-events = "> 0", dead-letters-jobs = "> 0", inbox-parked = "> 0", inbox-conflict = "> 0", handoff-forged = "> 5", outbox-late = "> 0",
      } : [for c in google_monitoring_alert_policy.this[name].conditions : format("%s %s", c.condition_threshold[0].comparison == "COMPARISON_LT" ? "<" : ">", c.condition_threshold[0].threshold_value)
    if !startswith(c.display_name, "enough requests")] == [want]])
    error_message = "A threshold differs."
  }

  assert {
    condition     = strcontains(google_logging_metric.counter["outbox_late"].filter, "jsonPayload.oldestAgeSeconds>300")
    error_message = "An event must be late after five minutes."
  }

  assert {
    condition     = strcontains(google_logging_metric.counter["relay_slow"].filter, "jsonPayload.relay.oldestAgeSeconds>60")
    error_message = "An event must be slow after a minute."
  }

  assert {
    condition = jsonencode({ for job in var.jobs : job => [for c in google_monitoring_alert_policy.this["job-${job}"].conditions : c.condition_absent[0].duration if length(c.condition_absent) > 0] }) == jsonencode({
      relay = ["180s"], sweep-outbox = ["84600s"]
    })
    error_message = "The absence alert must fire after three minutes for the relay and after a day for a sweep."
  }

  assert {
    condition     = alltrue([for job in var.jobs : length(google_monitoring_alert_policy.this["job-${job}"].conditions) == 3])
    error_message = "A job alert must have three conditions: failures, no success, no data."
  }

  assert {
    condition = alltrue([for a in google_monitoring_alert_policy.this :
      length(a.notification_channels) == (a.user_labels.severity == "page" ? 3 : 1) && a.severity == (a.user_labels.severity == "page" ? "CRITICAL" : "WARNING")
    ])
    error_message = "Pages and tickets must go to their own recipients."
  }
}

run "overridden_thresholds_and_runbook_link" {
  command = apply

  module {
    source = "./modules/monitoring"
  }

  variables {
    thresholds   = { outbox_parked_known = 3, postgres_connections = 0.5 }
    runbooks_url = "https://docs.example.com/runbooks"
  }

  assert {
    condition     = strcontains(google_logging_metric.counter["outbox_parked"].filter, "jsonPayload.parked>3")
    error_message = "outbox_parked_known must be part of the filter."
  }

  assert {
    condition     = google_monitoring_alert_policy.this["postgres-connections"].conditions[0].condition_threshold[0].threshold_value == 200
    error_message = "An overridden threshold must take effect."
  }

  assert {
    condition     = google_monitoring_alert_policy.this["outbox-late"].documentation[0].links[0].url == "https://docs.example.com/runbooks/outbox.md"
    error_message = "An alert must link to its runbook."
  }
}

run "invalid_module_variables" {
  command = plan

  module {
    source = "./modules/monitoring"
  }

  variables {
    channels     = { page_emails = ["nobody"] }
    thresholds   = { cache_hits_failing = 0.7 }
    runbooks_url = "https://docs.example.com/"
  }

  expect_failures = [var.channels, var.thresholds, var.runbooks_url]
}

run "share_above_one" {
  command = plan

  module {
    source = "./modules/monitoring"
  }

  variables {
    thresholds = { bots_share = 2 }
  }

  expect_failures = [var.thresholds]
}

run "production_without_page_recipients" {
  command = plan

  variables {
    alert_channels = { ticket_emails = ["a@ghasi.io"] }
  }

  expect_failures = [check.production_alerts_have_recipients]
}

run "unknown_threshold" {
  command = plan

  variables {
    alert_thresholds = { bot_share = 0.3 }
  }

  expect_failures = [output.alerts]
}
