# What guests, and who pretends to be one, would notice or cause.
locals {
  # A share of few requests is chance.
  busy = {
    title  = "there are enough requests to speak of a share"
    filter = local.requests
    align  = "ALIGN_RATE"
    above  = var.thresholds.least_requests_a_second
  }

  # A policy has six conditions at most; functions with as many instances share one.
  limits = { for f in var.functions : f.max_instances => f.service... if contains(["public", "internal"], f.kind) }

  # Of requests, where nothing else is said, and only while there are enough of them.
  shares = {
    client-errors = {
      title    = "More requests than usual are refused as wrong"
      severity = "ticket"
      runbook  = "availability"
      share    = { filter = "${local.requests} AND metric.label.response_code_class=\"4xx\"", above = var.thresholds.client_errors_share, duration = "900s" }
    }

    cache-hits-low = {
      title    = "Fewer searches than the target are answered from the cache"
      severity = "ticket"
      runbook  = "cache"
      share    = merge(local.hits, { period = "3600s", below = var.thresholds.cache_hits_target, duration = "21600s" })
    }

    cache-hits-failing = {
      title    = "The cache answers hardly any searches"
      severity = "page"
      runbook  = "cache"
      share    = merge(local.hits, { below = var.thresholds.cache_hits_failing, duration = "1800s" })
    }

    upstream-degraded = {
      title    = "Answers lack parts"
      severity = "ticket"
      runbook  = "upstream"
      share    = { filter = local.metric.degraded, above = var.thresholds.degraded_share, duration = "900s" }
    }

    bots = {
      title    = "Many clients are taken for robots"
      severity = "ticket"
      runbook  = "bots"
      share    = { filter = local.metric.suspected, above = var.thresholds.bots_share, duration = "1800s" }
    }

    limits = {
      title    = "Many requests are over a limit"
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
    conditions = [local.busy, merge({ over = local.requests, align = "ALIGN_RATE" }, s.share)]
  } }

  guest_alerts = {
    front-door = {
      title    = "The front door does not answer"
      severity = "page"
      runbook  = "front-door"
      conditions = [{
        filter = join(" AND ", [
          "metric.type=\"monitoring.googleapis.com/uptime_check/check_passed\" AND resource.type=\"uptime_url\"",
          "metric.label.check_id=\"${google_monitoring_uptime_check_config.front_door.uptime_check_id}\"",
        ])
        align    = "ALIGN_NEXT_OLDER"
        period   = "1200s"
        reduce   = "REDUCE_COUNT_FALSE"
        above    = 1 # one place on earth that cannot reach us is its own trouble
        duration = "120s"
      }]
    }

    upstream-breaker = {
      title      = "An upstream is not asked any more"
      severity   = "page"
      runbook    = "upstream"
      conditions = [{ filter = local.metric.breaker_open, above = var.thresholds.breaker_refusals, duration = "300s" }]
    }

    # Signed by our key, in its time, and not in the ledger, without which nothing is minted.
    handoff-unminted = {
      title      = "A token of ours is of no handoff of ours"
      severity   = "page"
      runbook    = "handoff"
      conditions = [{ filter = local.metric.unminted, above = 0 }]
    }

    handoff-forged = {
      title      = "Tokens of handoffs are not ours"
      severity   = "page"
      runbook    = "handoff"
      conditions = [{ filter = local.metric.forged, period = "600s", above = var.thresholds.handoffs_forged }]
    }

    handoff-replayed = {
      title      = "Handoffs are used twice"
      severity   = "ticket"
      runbook    = "handoff"
      conditions = [{ filter = local.metric.replayed, period = "3600s", above = var.thresholds.handoffs_replayed }]
    }

    instances = {
      title    = "A function has no more instances to start"
      severity = "ticket"
      runbook  = "instances"
      conditions = [for most, services in local.limits : {
        title = "as many as may be: ${most}"
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

    # Answered 429 or 500 by Cloud Run, so that the objective does not see all of them.
    no-instance = {
      title      = "Requests find no instance"
      severity   = "page"
      runbook    = "instances"
      conditions = [{ filter = local.metric.no_instance, above = 10, duration = "60s" }]
    }

    does-not-open = {
      title      = "A function does not start"
      severity   = "page"
      runbook    = "does-not-open"
      conditions = [{ filter = local.metric.does_not_open, by = ["metric.label.function"], above = 0 }]
    }

    panics = {
      title      = "A request ran into a defect"
      severity   = "ticket"
      runbook    = "panics"
      conditions = [{ filter = local.metric.panics, by = ["metric.label.function"], above = 0 }]
    }

    flags-stale = {
      title      = "Flags cannot be read"
      severity   = "ticket"
      runbook    = "flags"
      conditions = [{ filter = local.metric.flags_stale, period = "600s", above = 0, duration = "1800s" }]
    }
  }
}

# Asks as a guest's page would, from several places. A limit or a doubt whether it is a robot (429) says that the way in is open; 403 and
# 404 do not: that is what everybody gets while the edge's secret, the gateway's right to call or its routes are wrong.
resource "google_monitoring_uptime_check_config" "front_door" {
  display_name = "bff-consumer ${var.environment}: front door"
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
