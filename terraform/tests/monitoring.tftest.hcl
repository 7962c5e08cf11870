# From where on somebody is told, and who. The module by itself, then the whole with what it must refuse.
mock_provider "google" {
  source          = "./tests/mocks/google"
  override_during = plan
}

mock_provider "google-beta" {
  source          = "./tests/mocks/google-beta"
  override_during = plan
}

# Ids that only an apply decides are in the filters of alerts, so good cases are applied, to nothing.
# Of the whole and of the module; each takes those it has.
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
    error_message = "An objective for latency is not that of docs/spec/limits.md#service-level-objectives."
  }

  assert {
    condition = jsonencode({ for name, slo in google_monitoring_slo.ratio : name => slo.goal }) == jsonencode({
      availability = 0.999, cache-hits = 0.6, detail-availability = 0.999, handoff-availability = 0.999, search-availability = 0.999, telemetry = 0.9999
    })
    error_message = "An objective is not that of docs/spec/limits.md#service-level-objectives."
  }

  assert {
    condition     = alltrue([for slo in merge(google_monitoring_slo.latency, google_monitoring_slo.ratio) : slo.rolling_period_days == 28])
    error_message = "Objectives are over 28 days."
  }
}

run "budgets_burn" {
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
    error_message = "A budget is watched over an hour with 5 minutes at 14.4 times, and over six with 30 at 6 times."
  }

  assert {
    condition = alltrue([for of in ["", "search-", "detail-", "handoff-"] : alltrue([for pace, period in { fast = "3600s", slow = "21600s" } :
      [for c in google_monitoring_alert_policy.this["${of}availability-burns-${pace}"].conditions :
        "${c.condition_threshold[0].aggregations[0].alignment_period} ${c.condition_threshold[0].threshold_value}"
      if strcontains(c.condition_threshold[0].filter, "\"5xx\"")] == ["${period} 10"]
    ])])
    error_message = "Of ten requests at night one that fails wakes somebody."
  }

  assert {
    condition     = strcontains(google_monitoring_slo.ratio["handoff-availability"].request_based_sli[0].good_total_ratio[0].bad_service_filter, "=one_of(\"s-handoff\") AND")
    error_message = "Handoffs that fail are lost among all requests."
  }

  assert {
    condition     = alltrue([for name, a in google_monitoring_alert_policy.this : a.combiner == "AND" if strcontains(name, "-burns-")])
    error_message = "Both windows must burn."
  }
}

run "the_way_in" {
  command = apply

  module {
    source = "./modules/monitoring"
  }

  # 403 and 404 are what everybody gets while the edge's secret or the gateway is wrong.
  assert {
    condition = [for c in google_monitoring_uptime_check_config.front_door.http_check[0].accepted_response_status_codes :
    c.status_class == null ? tostring(c.status_value) : c.status_class] == ["STATUS_CLASS_2XX", "429"]
    error_message = "The front door counts as open while nobody is let in."
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
    if !startswith(c.display_name, "there are")] == [want]])
    error_message = "A threshold is another."
  }

  assert {
    condition     = strcontains(google_logging_metric.counter["outbox_late"].filter, "jsonPayload.oldestAgeSeconds>300")
    error_message = "An event is late after five minutes."
  }

  assert {
    condition     = strcontains(google_logging_metric.counter["relay_slow"].filter, "jsonPayload.relay.oldestAgeSeconds>60")
    error_message = "An event is slow after a minute."
  }

  assert {
    condition = jsonencode({ for job in var.jobs : job => [for c in google_monitoring_alert_policy.this["job-${job}"].conditions : c.condition_absent[0].duration if length(c.condition_absent) > 0] }) == jsonencode({
      relay = ["180s"], sweep-outbox = ["84600s"]
    })
    error_message = "The relay is missed after three minutes, a sweep after a day."
  }

  assert {
    condition     = alltrue([for job in var.jobs : length(google_monitoring_alert_policy.this["job-${job}"].conditions) == 3])
    error_message = "A job fails, or does not succeed, or is not heard of."
  }

  assert {
    condition = alltrue([for a in google_monitoring_alert_policy.this :
      length(a.notification_channels) == (a.user_labels.severity == "page" ? 3 : 1) && a.severity == (a.user_labels.severity == "page" ? "CRITICAL" : "WARNING")
    ])
    error_message = "Who is woken and who has a ticket are told apart."
  }
}

run "other_thresholds_and_a_link" {
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
    error_message = "Rows that everybody knows of are told of."
  }

  assert {
    condition     = google_monitoring_alert_policy.this["postgres-connections"].conditions[0].condition_threshold[0].threshold_value == 200
    error_message = "A threshold cannot be changed."
  }

  assert {
    condition     = google_monitoring_alert_policy.this["outbox-late"].documentation[0].links[0].url == "https://docs.example.com/runbooks/outbox.md"
    error_message = "An alert links its runbook."
  }
}

run "what_the_module_refuses" {
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

run "a_share_of_two_hundred_percent" {
  command = plan

  module {
    source = "./modules/monitoring"
  }

  variables {
    thresholds = { bots_share = 2 }
  }

  expect_failures = [var.thresholds]
}

run "production_that_wakes_nobody" {
  command = plan

  variables {
    alert_channels = { ticket_emails = ["a@ghasi.io"] }
  }

  expect_failures = [check.somebody_is_woken]
}

run "a_threshold_of_nothing" {
  command = plan

  variables {
    alert_thresholds = { bot_share = 0.3 }
  }

  expect_failures = [output.alerts]
}
