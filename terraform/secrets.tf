# Key rings, newest key first. Terraform makes the places and never sees a value: docs/deploy.md says how the first
# version is written, docs/runbooks/rotate-keys.md how a key is changed. A version is named by number, so that a new one is
# rolled out like code.
locals {
  rings = {
    SESSION_KEYS = "session-keys" # signs the ids in cookies
    PEPPERS      = "peppers"      # hashes addresses and fingerprints
    HANDOFF_KEYS = "handoff-keys" # signs tokens of handoffs
  }
}

resource "google_secret_manager_secret" "ring" {
  for_each = local.rings

  secret_id = "${local.name}-${each.value}"

  replication {
    auto {}
  }

  # Says that it is time; a person changes the key. The time of the first notice is the operator's to move.
  rotation {
    rotation_period    = var.rotation_period
    next_rotation_time = var.next_rotation_time
  }

  topics {
    name = google_pubsub_topic.rotation.id
  }

  depends_on = [google_pubsub_topic_iam_member.rotation]

  lifecycle {
    ignore_changes = [rotation[0].next_rotation_time] # Google moves it after each notice
  }
}

resource "google_pubsub_topic" "rotation" {
  name = "bff-consumer.secrets.rotation"

  depends_on = [google_project_service.this]
}

resource "google_pubsub_subscription" "rotation" {
  name                       = "bff-consumer.secrets.rotation"
  topic                      = google_pubsub_topic.rotation.id
  ack_deadline_seconds       = 30
  message_retention_duration = "604800s"

  expiration_policy {
    ttl = ""
  }
}

# Secret Manager's own account exists once somebody asked for it: `gcloud beta services identity create` (docs/deploy.md).
resource "google_pubsub_topic_iam_member" "rotation" {
  topic  = google_pubsub_topic.rotation.name
  role   = "roles/pubsub.publisher"
  member = "serviceAccount:service-${var.project_number}@gcp-sa-secretmanager.iam.gserviceaccount.com"
}

# What the load balancer adds to each request and the public functions ask for: the old value second, while it changes.
resource "google_secret_manager_secret" "edge" {
  count = var.edge == null ? 0 : 1

  secret_id = "${local.name}-edge-secret"

  replication {
    auto {}
  }

  depends_on = [google_project_service.this]
}

resource "google_secret_manager_secret_version" "edge" {
  count = var.edge == null ? 0 : 1

  secret      = google_secret_manager_secret.edge[0].id
  secret_data = join(",", var.edge_secrets)

  # Instances of the revision before mount the version before, also when traffic is given back to it.
  deletion_policy = "ABANDON"
}

locals {
  # What a function names by its environment variable; modules/function grants it and mounts it.
  secrets = merge(
    { for name, s in google_secret_manager_secret.ring : name => { id = s.secret_id, version = var.secret_versions[name] } },
    { REDIS_PASSWORD = {
      id = google_secret_manager_secret.redis_password.secret_id, version = google_secret_manager_secret_version.redis_password.version
    } },
    var.edge == null ? {} : { EDGE_SECRET = {
      id = google_secret_manager_secret.edge[0].secret_id, version = google_secret_manager_secret_version.edge[0].version
    } },
  )
}
