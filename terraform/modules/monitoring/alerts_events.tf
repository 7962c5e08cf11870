# What we tell others, what others tell us, and what the scheduler starts.
locals {
  subscription = "resource.type=\"pubsub_subscription\" AND resource.label.subscription_id"
  waiting      = "metric.type=\"pubsub.googleapis.com/subscription/num_undelivered_messages\" AND ${local.subscription}"
  oldest       = "metric.type=\"pubsub.googleapis.com/subscription/oldest_unacked_message_age\" AND ${local.subscription}"
  one_of = { for name, set in { event = var.event_dead_letters, job = var.job_dead_letters, pushed = var.event_subscriptions } :
  name => "one_of(${join(",", formatlist("\"%s\"", sort(set)))})" }

  event_alerts = {
    outbox-late = {
      title      = "Events do not get out"
      severity   = "page"
      runbook    = "outbox"
      conditions = [{ filter = local.metric.outbox_late, above = 0, duration = "60s" }]
    }

    # Three minutes of ten: one late minute in an hour already burns the budget of a month a hundred times too fast.
    outbox-slow = {
      title      = "Events leave late"
      severity   = "ticket"
      runbook    = "outbox"
      conditions = [{ filter = local.metric.relay_slow, period = "600s", above = 2 }]
    }

    outbox-deep = {
      title      = "More events come than go"
      severity   = "ticket"
      runbook    = "outbox"
      conditions = [{ filter = local.metric.relay_deep, period = "600s", above = 4 }]
    }

    outbox-parked = {
      title      = "Events were given up"
      severity   = "ticket"
      runbook    = "outbox"
      conditions = [{ filter = local.metric.outbox_parked, above = 0 }]
    }

    outbox-spill = {
      title      = "Events wait in Redis"
      severity   = "ticket"
      runbook    = "outbox"
      conditions = [{ filter = local.metric.spill_waits, above = 0, duration = "600s" }]
    }

    telemetry-lost = {
      title      = "Events are lost"
      severity   = "page"
      runbook    = "telemetry-lost"
      conditions = [{ filter = local.metric.telemetry_lost, above = 0, duration = "60s" }]
    }

    inbox-parked = {
      title    = "An event of the platform cannot be read"
      severity = "page"
      runbook  = "inbox"
      conditions = [{
        filter = "${local.metric.alarms} AND metric.label.alarm=\"inbox-parked\""
        by     = ["metric.label.function"]
        above  = 0
      }]
    }

    inbox-conflict = {
      title    = "An event of the platform says two things"
      severity = "page"
      runbook  = "inbox"
      conditions = [{
        filter = "${local.metric.alarms} AND metric.label.alarm=\"inbox-conflict\""
        by     = ["metric.label.function"]
        above  = 0
      }]
    }

    dead-letters-events = {
      title    = "An event of the platform had no effect"
      severity = "page"
      runbook  = "inbox"
      conditions = [{
        filter = "${local.waiting}=${local.one_of.event}"
        align  = "ALIGN_MAX"
        by     = ["resource.label.subscription_id"]
        above  = 0
      }]
    }

    events-wait = {
      title    = "Events of the platform wait"
      severity = "page"
      runbook  = "inbox"
      conditions = [{
        filter   = "${local.oldest}=${local.one_of.pushed}"
        align    = "ALIGN_MAX"
        reduce   = "REDUCE_MAX"
        by       = ["resource.label.subscription_id"]
        above    = var.thresholds.event_wait_seconds
        duration = "300s"
      }]
    }

    dead-letters-jobs = {
      title    = "A job failed until it was given up"
      severity = "ticket"
      runbook  = "jobs"
      conditions = [{
        filter = "${local.waiting}=${local.one_of.job}"
        align  = "ALIGN_MAX"
        by     = ["resource.label.subscription_id"]
        above  = 0
      }]
    }

    key-rotation-due = {
      title      = "A key is to be changed"
      severity   = "ticket"
      runbook    = "rotate-keys"
      conditions = [{ filter = "${local.waiting}=\"${var.rotation_subscription}\"", align = "ALIGN_MAX", above = 0 }]
    }
  }

  # A job that fails, or is not heard of. What is absent after a while may also be a series of zeros, so both are asked. Nothing is
  # looked back for longer than 25 hours, and an absence is 23 and a half at most: of a daily job the success of two hours is still
  # seen when the absence begins, so that it is told 25 and a half hours after the last one.
  forward = { for name in var.jobs : name => name == "relay" ? {
    failures = 2, within = "300s", seen = "60s", absent = "180s", none_in = "180s", severity = "page", runbook = "outbox"
    } : {
    failures = 2, within = "3600s", seen = "7200s", absent = "84600s", none_in = "90000s", severity = "ticket", runbook = "jobs"
  } }

  job_alerts = { for name, p in local.forward : "job-${name}" => {
    title    = "Job ${name} makes no progress"
    severity = p.severity
    runbook  = p.runbook
    conditions = [
      {
        title  = "it fails"
        filter = "${local.metric.job_failures} AND metric.label.function=\"${var.functions[name].entry}\""
        period = p.within
        above  = p.failures
      },
      {
        title  = "it does not succeed"
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
