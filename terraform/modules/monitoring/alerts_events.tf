# Alerts for outgoing events, incoming platform events and scheduled jobs.
locals {
  subscription = "resource.type=\"pubsub_subscription\" AND resource.label.subscription_id"
  undelivered  = "metric.type=\"pubsub.googleapis.com/subscription/num_undelivered_messages\" AND ${local.subscription}"
  oldest       = "metric.type=\"pubsub.googleapis.com/subscription/oldest_unacked_message_age\" AND ${local.subscription}"
  one_of = { for name, set in { event = var.event_dead_letters, job = var.job_dead_letters, subscription = var.event_subscriptions } :
  name => "one_of(${join(",", formatlist("\"%s\"", sort(set)))})" }

  event_alerts = {
    outbox-late = {
      title      = "Outgoing events are not published"
      severity   = "page"
      runbook    = "outbox"
      conditions = [{ filter = local.metric.outbox_late, above = 0, duration = "60s" }]
    }

    # Three minutes of ten, because a single late minute per hour burns the 28-day budget 167 times
    # too fast.
    outbox-slow = {
      title      = "Outgoing events are published late"
      severity   = "ticket"
      runbook    = "outbox"
      conditions = [{ filter = local.metric.relay_slow, period = "600s", above = 2 }]
    }

    outbox-backlog = {
      title      = "The outbox backlog is large"
      severity   = "ticket"
      runbook    = "outbox"
      conditions = [{ filter = local.metric.relay_deep, period = "600s", above = 4 }]
    }

    outbox-parked = {
      title      = "Outbox rows are parked"
      severity   = "ticket"
      runbook    = "outbox"
      conditions = [{ filter = local.metric.outbox_parked, above = 0 }]
    }

    outbox-spill = {
      title      = "Outgoing events wait in Redis"
      severity   = "ticket"
      runbook    = "outbox"
      conditions = [{ filter = local.metric.spill_waits, above = 0, duration = "600s" }]
    }

    telemetry-lost = {
      title      = "Outgoing events are lost"
      severity   = "page"
      runbook    = "telemetry-lost"
      conditions = [{ filter = local.metric.telemetry_lost, above = 0, duration = "60s" }]
    }

    inbox-parked = {
      title    = "A platform event cannot be decoded"
      severity = "page"
      runbook  = "inbox"
      conditions = [{
        filter = "${local.metric.alarms} AND metric.label.alarm=\"inbox-parked\""
        by     = ["metric.label.function"]
        above  = 0
      }]
    }

    inbox-conflict = {
      title    = "Two platform events share an id and differ"
      severity = "page"
      runbook  = "inbox"
      conditions = [{
        filter = "${local.metric.alarms} AND metric.label.alarm=\"inbox-conflict\""
        by     = ["metric.label.function"]
        above  = 0
      }]
    }

    dead-letters-events = {
      title    = "A platform event is a dead letter"
      severity = "page"
      runbook  = "inbox"
      conditions = [{
        filter = "${local.undelivered}=${local.one_of.event}"
        align  = "ALIGN_MAX"
        by     = ["resource.label.subscription_id"]
        above  = 0
      }]
    }

    events-delayed = {
      title    = "Platform events are delayed"
      severity = "page"
      runbook  = "inbox"
      conditions = [{
        filter   = "${local.oldest}=${local.one_of.subscription}"
        align    = "ALIGN_MAX"
        reduce   = "REDUCE_MAX"
        by       = ["resource.label.subscription_id"]
        above    = var.thresholds.event_wait_seconds
        duration = "300s"
      }]
    }

    dead-letters-jobs = {
      title    = "A job's tick is a dead letter"
      severity = "ticket"
      runbook  = "jobs"
      conditions = [{
        filter = "${local.undelivered}=${local.one_of.job}"
        align  = "ALIGN_MAX"
        by     = ["resource.label.subscription_id"]
        above  = 0
      }]
    }

    key-rotation-due = {
      title      = "A key is due for rotation"
      severity   = "ticket"
      runbook    = "rotate-keys"
      conditions = [{ filter = "${local.undelivered}=\"${var.rotation_subscription}\"", align = "ALIGN_MAX", above = 0 }]
    }
  }

  # Conditions of a job that fails or does not run. After the last success the series may end or
  # continue with zeros, so one condition covers each case. Cloud Monitoring looks back at most 25
  # hours, and an absence lasts at most 23.5 hours. The absence condition of a daily job aligns
  # successes over two hours, so its alert fires 25.5 hours after the last success.
  job_windows = { for name in var.jobs : name => name == "relay" ? {
    failures = 2, within = "300s", seen = "60s", absent = "180s", none_in = "180s", severity = "page", runbook = "outbox"
    } : {
    failures = 2, within = "3600s", seen = "7200s", absent = "84600s", none_in = "90000s", severity = "ticket", runbook = "jobs"
  } }

  job_alerts = { for name, p in local.job_windows : "job-${name}" => {
    title    = "Job ${name} fails or does not run"
    severity = p.severity
    runbook  = p.runbook
    conditions = [
      {
        title  = "runs fail"
        filter = "${local.metric.job_failures} AND metric.label.function=\"${var.functions[name].entry}\""
        period = p.within
        above  = p.failures
      },
      {
        title  = "no run succeeds"
        filter = "${local.metric.job_successes} AND metric.label.function=\"${var.functions[name].entry}\""
        period = p.none_in
        below  = 1
      },
      {
        filter = "${local.metric.job_successes} AND metric.label.function=\"${var.functions[name].entry}\""
        period = p.seen
        absent = p.absent
      },
    ]
  } }
}
