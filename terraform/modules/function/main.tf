# One entry point: the function, its own service account with least privilege, its secrets and its
# invokers.

terraform {
  required_version = ">= 1.11"

  required_providers {
    google = {
      source  = "hashicorp/google"
      version = "~> 7.39"
    }
  }
}

resource "google_service_account" "this" {
  account_id   = "bffc-${var.name}" # at most 30 characters in all
  display_name = "${var.function.entry} of bff-consumer"
}

resource "google_project_iam_member" "role" {
  for_each = var.roles

  project = var.common.project
  role    = each.key
  member  = google_service_account.this.member
}

resource "google_secret_manager_secret_iam_member" "reader" {
  for_each = var.secrets

  secret_id = each.value.id
  role      = "roles/secretmanager.secretAccessor"
  member    = google_service_account.this.member
}

resource "google_cloudfunctions2_function" "this" {
  name        = "bff-consumer-${var.name}"
  location    = var.common.region
  description = "${var.function.entry} of functions/${var.function.folder}"

  labels = {
    folder = var.function.folder
    kind   = var.function.kind
  }

  build_config {
    runtime         = var.common.runtime
    entry_point     = var.function.entry
    service_account = var.common.builder

    source {
      storage_source {
        bucket = var.common.archives[var.function.folder].bucket
        object = var.common.archives[var.function.folder].object # named by content hash, so changed code triggers a build
      }
    }
  }

  service_config {
    service_account_email            = google_service_account.this.email
    available_memory                 = var.function.memory
    available_cpu                    = "1" # a concurrency above 1 needs a whole CPU
    timeout_seconds                  = var.function.timeout
    min_instance_count               = var.function.min_instances
    max_instance_count               = var.function.max_instances
    max_instance_request_concurrency = var.function.concurrency
    all_traffic_on_latest_revision   = true

    # Pub/Sub pushes of this project count as internal; the gateway, other services and people are
    # external. The invokers below restrict the callers in every case.
    ingress_settings = contains(["event", "job"], var.function.kind) ? "ALLOW_INTERNAL_ONLY" : "ALLOW_ALL"

    direct_vpc_egress = "VPC_EGRESS_PRIVATE_RANGES_ONLY"

    direct_vpc_network_interface {
      network    = var.common.network.network
      subnetwork = var.common.network.subnetwork
    }

    environment_variables = merge(var.environment, {
      CLOUDSQL_USER = trimsuffix(google_service_account.this.email, ".gserviceaccount.com")
    })

    dynamic "secret_environment_variables" {
      for_each = var.secrets

      content {
        key        = secret_environment_variables.key
        project_id = var.common.project
        secret     = secret_environment_variables.value.id
        version    = secret_environment_variables.value.version
      }
    }
  }

  # A revision that cannot read its secrets does not start.
  depends_on = [google_secret_manager_secret_iam_member.reader, google_project_iam_member.role]
}

resource "google_cloud_run_v2_service_iam_member" "invoker" {
  for_each = var.invokers

  name     = google_cloudfunctions2_function.this.name # the Cloud Run service has the name of the function
  location = var.common.region
  role     = "roles/run.invoker"
  member   = each.value
}
