# Service level objectives over 28 days (docs/spec/limits.md#service-level-objectives). A 4xx
# response counts neither as success nor as failure, and the objectives for events and the cache
# have no burn-rate alerts: docs/decisions/0036-slo-availability-and-burn-rates.md.
locals {
  latency = "metric.type=\"run.googleapis.com/request_latencies\" AND resource.type=\"cloud_run_revision\" AND resource.label.service_name"

  # All guest requests, and separately the classes that matter most: if every handoff failed, the
  # share of failed requests overall would still be small.
  classes = {
    availability         = { title = "Guest requests succeed", requests = local.requests }
    search-availability  = { title = "Searches succeed", requests = "${local.requests_of}=${local.one_class.search}" }
    detail-availability  = { title = "Hotel pages succeed", requests = "${local.requests_of}=${local.one_class.detail}" }
    handoff-availability = { title = "Handoffs succeed", requests = "${local.requests_of}=${local.one_class.handoff}" }
  }

  # Cloud Run services by class. The names of entry points are those of functions.tf.
  one_class = { for class, names in { search = ["search", "search-map", "facets"], detail = ["detail", "availability"], handoff = ["handoff"] } :
  class => "one_of(${join(",", [for name in names : "\"${var.functions[name].service}\"" if can(var.functions[name])])})" }

  failed = { for class, c in local.classes : class => "${c.requests} AND metric.label.response_code_class=\"5xx\"" }

  ratios = merge({ for class, c in local.classes : class => {
    title = c.title
    goal  = 0.999
    good  = "${c.requests} AND metric.label.response_code_class=one_of(\"2xx\",\"3xx\")"
    bad   = local.failed[class]
    } }, {
    cache-hits = {
      title = "Searches are answered from the cache"
      goal  = var.thresholds.cache_hits_target
      good  = local.hits.filter
      bad   = "${local.searches} AND metric.label.state=one_of(\"MISS\",\"BYPASS\")"
    }
    # A minute is good if every waiting event is younger than 60 s.
    telemetry = {
      title = "Events are published within ${var.thresholds.outbox_slow_seconds} s"
      goal  = 0.9999
      good  = local.metric.relay_in_time
      bad   = local.metric.relay_slow
    }
  })

  searches = "${local.metric.cache_answers} AND metric.label.function=one_of(\"Search\",\"SearchMap\")"

  # max is in milliseconds; goal is the share of requests that must not take longer.
  latencies = {
    search-p95  = { function = "search", max = 600, goal = 0.95 }
    search-p99  = { function = "search", max = 1100, goal = 0.99 }
    detail-p95  = { function = "detail", max = 500, goal = 0.95 }
    handoff-p99 = { function = "handoff", max = 250, goal = 0.99 }
  }

  # Objectives with burn-rate alerts: the severity of the slow alert, the runbook, and the filter of
  # failed requests.
  burn_rate_slos = merge(
    { for name, slo in google_monitoring_slo.latency : name => { slo = slo.name, slow = "ticket", runbook = "latency", failed = null } },
    { for name, failed in local.failed : name => { slo = google_monitoring_slo.ratio[name].name, slow = "page", runbook = "availability", failed = failed } },
  )

  # Burn rate 14.4 uses 2 % of the 28-day budget in one hour; burn rate 6 uses 5 % in six hours. The
  # short window ends the alert soon after the failures stop.
  burn_rates = {
    fast = { rate = 14.4, long = "3600s", short = "300s" }
    slow = { rate = 6, long = "21600s", short = "1800s" }
  }

  burn_alerts = merge([for name, b in local.burn_rate_slos : {
    for pace, p in local.burn_rates : "${name}-burns-${pace}" => {
      title    = "${name}: the error budget burns ${p.rate} times too fast"
      severity = pace == "fast" ? "page" : b.slow
      runbook  = b.runbook
      combiner = "AND"
      conditions = concat([for window in [p.long, p.short] : {
        title  = "burn rate over ${window}"
        filter = "select_slo_burn_rate(\"${b.slo}\", \"${window}\")"
        above  = p.rate
        }], [for filter in compact([b.failed]) : { # at night a single failure of ten requests would burn the budget
        title  = "minimum number of failed requests"
        filter = filter
        period = p.long
        above  = var.thresholds.min_failures
      }])
    }
  }]...)
}

resource "google_monitoring_custom_service" "this" {
  service_id   = "bff-consumer"
  display_name = "bff-consumer (${var.environment})"
}

resource "google_monitoring_slo" "ratio" {
  for_each = local.ratios

  service             = google_monitoring_custom_service.this.service_id
  slo_id              = each.key
  display_name        = each.value.title
  goal                = each.value.goal
  rolling_period_days = 28

  request_based_sli {
    good_total_ratio {
      good_service_filter = each.value.good
      bad_service_filter  = each.value.bad
    }
  }
}

resource "google_monitoring_slo" "latency" {
  for_each = local.latencies

  service             = google_monitoring_custom_service.this.service_id
  slo_id              = each.key
  display_name        = "${each.value.function}: ${each.value.goal * 100} % within ${each.value.max} ms"
  goal                = each.value.goal
  rolling_period_days = 28

  request_based_sli {
    distribution_cut {
      distribution_filter = "${local.latency}=\"${var.functions[each.value.function].service}\""

      range {
        max = each.value.max
      }
    }
  }
}
