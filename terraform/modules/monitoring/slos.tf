# The objectives of docs/spec/limits.md#service-level-objectives, over 28 days. What a guest gets wrong (4xx) is no failure of ours and counts in neither:
# docs/decisions/0036-slo-availability-and-burn-rates.md, which also says why events and the cache have an objective without burn rates.
locals {
  latency = "metric.type=\"run.googleapis.com/request_latencies\" AND resource.type=\"cloud_run_revision\" AND resource.label.service_name"

  # All that guests ask, and by itself what they came for: of few handoffs all could fail, and of all requests hardly any.
  classes = {
    availability         = { title = "Requests of guests are answered", requests = local.requests }
    search-availability  = { title = "Searches are answered", requests = "${local.requests_of}=${local.one_class.search}" }
    detail-availability  = { title = "Hotels are shown", requests = "${local.requests_of}=${local.one_class.detail}" }
    handoff-availability = { title = "Handoffs are minted", requests = "${local.requests_of}=${local.one_class.handoff}" }
  }

  # Services by what guests came for; entry points are called by the names that functions.tf gives them.
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
    # A minute in which every event that waits is younger than 60 s.
    telemetry = {
      title = "Events leave within ${var.thresholds.outbox_slow_seconds} s"
      goal  = 0.9999
      good  = local.metric.relay_in_time
      bad   = local.metric.relay_slow
    }
  })

  searches = "${local.metric.cache_answers} AND metric.label.function=one_of(\"Search\",\"SearchMap\")"

  # Milliseconds, and the share of requests that may not take longer.
  latencies = {
    search-p95  = { function = "search", max = 600, goal = 0.95 }
    search-p99  = { function = "search", max = 1100, goal = 0.99 }
    detail-p95  = { function = "detail", max = 500, goal = 0.95 }
    handoff-p99 = { function = "handoff", max = 250, goal = 0.99 }
  }

  # Those whose budget can burn fast, by what somebody is told when it does.
  burning = merge(
    { for name, slo in google_monitoring_slo.latency : name => { slo = slo.name, slow = "ticket", runbook = "latency", failed = null } },
    { for name, failed in local.failed : name => { slo = google_monitoring_slo.ratio[name].name, slow = "page", runbook = "availability", failed = failed } },
  )

  # 14.4 times too fast is 2 % of the budget of 28 days in an hour; 6 times, 5 % in six. The short window ends the alert when it is over.
  paces = {
    fast = { rate = 14.4, long = "3600s", short = "300s" }
    slow = { rate = 6, long = "21600s", short = "1800s" }
  }

  burn_alerts = merge([for name, b in local.burning : {
    for pace, p in local.paces : "${name}-burns-${pace}" => {
      title    = "${name}: the error budget burns ${p.rate} times too fast"
      severity = pace == "fast" ? "page" : b.slow
      runbook  = b.runbook
      combiner = "AND"
      conditions = concat([for window in [p.long, p.short] : {
        title  = "burn rate over ${window}"
        filter = "select_slo_burn_rate(\"${b.slo}\", \"${window}\")"
        above  = p.rate
        }], [for filter in compact([b.failed]) : { # at night one of ten requests would burn it
        title  = "more than a handful failed"
        filter = filter
        period = p.long
        above  = var.thresholds.failures_of_a_handful
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
