# Topics and subscriptions. A test compares them with the table of local/pubsub.
locals {
  # Incoming platform events. The platform owns the topics.
  platform_events = {
    "bff-consumer.theme.published.v1" = {
      topic = "melmastoon.theme.published.v1", function = "theme-published", attempts = 5
    }
    "bff-consumer.search_aggregation.listing.indexed.v1" = {
      topic = "melmastoon.search_aggregation.listing.indexed.v1", function = "listing-indexed", attempts = 5
    }
    "bff-consumer.tenant.suspended.v1" = {
      topic = "melmastoon.tenant.suspended.v1", function = "tenant-suspended", attempts = 10
    }
    "bff-consumer.tenant.reinstated.v1" = {
      topic = "melmastoon.tenant.reinstated.v1", function = "tenant-reinstated", attempts = 10
    }
  }

  # Subjects of outgoing events. A topic has the name of its subject.
  subjects = toset([
    "melmastoon.bff.consumer.bot_suspected.v1",
    "melmastoon.bff.consumer.click.recorded.v1",
    "melmastoon.bff.consumer.currency.changed.v1",
    "melmastoon.bff.consumer.funnel.step_recorded.v1",
    "melmastoon.bff.consumer.handoff.initiated.v1",
    "melmastoon.bff.consumer.locale.changed.v1",
    "melmastoon.bff.consumer.page.viewed.v1",
    "melmastoon.bff.consumer.search.executed.v1",
    "melmastoon.bff.consumer.session.ended.v1",
    "melmastoon.bff.consumer.session.started.v1",
    "melmastoon.bff.consumer.wishlist.added.v1",
    "melmastoon.bff.consumer.wishlist.removed.v1",
  ])
}

# Pub/Sub pushes with this account. No other account may call the functions behind subscriptions.
resource "google_service_account" "pusher" {
  account_id   = "bffc-pusher"
  display_name = "Pub/Sub pushes to bff-consumer as this account"
}

resource "google_service_account_iam_member" "pusher" {
  service_account_id = google_service_account.pusher.name
  role               = "roles/iam.serviceAccountOpenIdTokenCreator"
  member             = local.pubsub_agent
}

module "event" {
  source   = "./modules/subscription"
  for_each = local.platform_events

  name                  = each.key
  topic                 = "projects/${coalesce(var.platform_project, var.project)}/topics/${each.value.topic}"
  endpoint              = local.deployed[each.value.function].uri
  path                  = "/internal/events/${each.value.function}"
  ack_deadline_seconds  = 30 # the code takes at most 25
  max_delivery_attempts = each.value.attempts
  pusher                = google_service_account.pusher.email
  pubsub_agent          = local.pubsub_agent
}

resource "google_pubsub_topic" "telemetry" {
  for_each = local.subjects

  name                       = each.key
  message_retention_duration = "604800s" # a consumer can replay one week after a defect

  # The relay publishes in one region, because Pub/Sub keeps the order of a session's events only
  # within a region. Events are also stored in this region only.
  message_storage_policy {
    allowed_persistence_regions = [var.region]
  }

  depends_on = [google_project_service.this]
}

resource "google_pubsub_topic_iam_member" "telemetry" {
  for_each = local.subjects

  topic  = google_pubsub_topic.telemetry[each.key].name
  role   = "roles/pubsub.publisher"
  member = local.deployed["relay"].member
}
