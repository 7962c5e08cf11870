# A push subscription to one function: push account, acknowledgement deadline, retry policy,
# dead-letter topic, and a pull subscription for the dead letters.

terraform {
  required_version = ">= 1.11"

  required_providers {
    google = {
      source  = "hashicorp/google"
      version = "~> 7.39"
    }
  }
}

resource "google_pubsub_subscription" "this" {
  name                       = var.name
  topic                      = var.topic
  ack_deadline_seconds       = var.ack_deadline_seconds
  message_retention_duration = "604800s"

  push_config {
    push_endpoint = "${var.endpoint}${var.path}"

    oidc_token {
      service_account_email = var.pusher
      audience              = var.endpoint
    }
  }

  dead_letter_policy {
    dead_letter_topic     = google_pubsub_topic.dead.id
    max_delivery_attempts = var.max_delivery_attempts
  }

  retry_policy {
    minimum_backoff = "10s"
    maximum_backoff = "600s"
  }

  # By default Pub/Sub deletes a subscription after 31 days without activity.
  expiration_policy {
    ttl = ""
  }

  # The grant must exist before the first message fails.
  depends_on = [google_pubsub_topic_iam_member.dead]
}

resource "google_pubsub_topic" "dead" {
  name = "${var.name}.dlq"
}

resource "google_pubsub_subscription" "dead" {
  name                       = "${var.name}.dlq"
  topic                      = google_pubsub_topic.dead.id
  ack_deadline_seconds       = 30
  message_retention_duration = "2678400s" # 31 days, the maximum

  expiration_policy {
    ttl = ""
  }
}

# Pub/Sub's service agent forwards a dead letter: it publishes to the dead-letter topic and
# acknowledges the message in the subscription.
resource "google_pubsub_topic_iam_member" "dead" {
  topic  = google_pubsub_topic.dead.name
  role   = "roles/pubsub.publisher"
  member = var.pubsub_agent
}

resource "google_pubsub_subscription_iam_member" "dead" {
  subscription = google_pubsub_subscription.this.name
  role         = "roles/pubsub.subscriber"
  member       = var.pubsub_agent
}
