# Key rings, newest key first. Terraform creates the secrets and never sees a value: docs/deploy.md
# shows how to write the first version, docs/runbooks/rotate-keys.md how to rotate a key. The
# deployed version is a number, so that a new version is rolled out like code.
locals {
  rings = {
    SESSION_KEYS = "session-keys" # signs the ids in cookies
    PEPPERS      = "peppers"      # hashes addresses and fingerprints
    HANDOFF_KEYS = "handoff-keys" # signs handoff tokens
  }
}

resource "google_secret_manager_secret" "ring" {
  for_each = local.rings

  secret_id = "${local.name}-${each.value}"

  replication {
    auto {}
  }

  # Secret Manager sends a notice; a person rotates the key. next_rotation_time sets the first
  # notice.
  rotation {
    rotation_period    = var.rotation_period
    next_rotation_time = var.next_rotation_time
  }

  topics {
    name = google_pubsub_topic.rotation.id
  }

  depends_on = [google_pubsub_topic_iam_member.rotation]

  lifecycle {
    ignore_changes = [rotation[0].next_rotation_time] # Google advances the time after each notice
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

# Secret Manager's service agent exists after `gcloud beta services identity create`
# (docs/deploy.md).
resource "google_pubsub_topic_iam_member" "rotation" {
  topic  = google_pubsub_topic.rotation.name
  role   = "roles/pubsub.publisher"
  member = "serviceAccount:service-${var.project_number}@gcp-sa-secretmanager.iam.gserviceaccount.com"
}

# Secret header that the edge adds to each request and the public functions require. During a
# rotation the second value is the other accepted value.
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

  # Instances of the previous revision mount the previous version, also after a rollback.
  deletion_policy = "ABANDON"
}

locals {
  # Secrets by environment variable. modules/function grants access and mounts them.
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
