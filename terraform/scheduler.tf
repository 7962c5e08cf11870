# Cloud Scheduler publishes a tick and Pub/Sub pushes it to the job. A failed tick is retried and
# finally becomes a dead letter.
locals {
  # By function. The sweeps run one after the other at night, when few guests are active.
  jobs = {
    relay             = { cadence = "* * * * *", ack = 90 }
    sweep-outbox      = { cadence = "17 3 * * *", ack = 600 }
    sweep-inbox       = { cadence = "27 3 * * *", ack = 600 }
    sweep-parked      = { cadence = "32 3 * * *", ack = 600 }
    sweep-handoffs    = { cadence = "37 3 * * *", ack = 600 }
    sweep-wishlist    = { cadence = "47 3 * * *", ack = 600 }
    sweep-bot-scores  = { cadence = "57 3 * * *", ack = 600 }
    sweep-idempotency = { cadence = "7 4 * * *", ack = 600 }
    sweep-sessions    = { cadence = "17 4 * * *", ack = 600 }
    sweep-choices     = { cadence = "27 4 * * *", ack = 600 }
  }
  cadence = { for name, job in local.jobs : name => coalesce(try(var.cadence[name], null), job.cadence) }
}

resource "google_pubsub_topic" "tick" {
  for_each = local.jobs

  name = "bff-consumer.jobs.${each.key}"

  depends_on = [google_project_service.this]
}

resource "google_cloud_scheduler_job" "tick" {
  for_each = local.jobs

  name      = "bff-consumer-${each.key}"
  region    = var.region
  schedule  = local.cadence[each.key]
  time_zone = "Etc/UTC"

  pubsub_target {
    topic_name = google_pubsub_topic.tick[each.key].id
    data       = base64encode("{}")
  }

  lifecycle {
    precondition {
      condition     = can(regex("^(\\S+ ){4}\\S+$", local.cadence[each.key]))
      error_message = "The cadence of ${each.key} must be cron with five fields, but is \"${local.cadence[each.key]}\"."
    }
  }
}

module "tick" {
  source   = "./modules/subscription"
  for_each = local.jobs

  name                  = "bff-consumer.jobs.${each.key}"
  topic                 = google_pubsub_topic.tick[each.key].id
  endpoint              = local.deployed[each.key].uri
  path                  = "/internal/jobs/${each.key}"
  ack_deadline_seconds  = each.value.ack
  max_delivery_attempts = 5
  pusher                = google_service_account.pusher.email
  pubsub_agent          = local.pubsub_agent
}
