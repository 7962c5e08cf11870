# APIs to enable in an empty project. Removing an API from the list does not disable it, because
# other services may use it. The APIs that Terraform itself needs are enabled beforehand:
# cloudresourcemanager, iam, serviceusage, storage (docs/deploy.md).
resource "google_project_service" "this" {
  for_each = toset([
    "apigateway.googleapis.com",
    "artifactregistry.googleapis.com",
    "cloudbuild.googleapis.com",
    "cloudfunctions.googleapis.com",
    "cloudscheduler.googleapis.com",
    "cloudtrace.googleapis.com", # without this API telemetry.googleapis.com discards traces
    "compute.googleapis.com",
    "firebaseremoteconfig.googleapis.com",
    "iam.googleapis.com",
    "logging.googleapis.com",
    "monitoring.googleapis.com",
    "pubsub.googleapis.com",
    "recaptchaenterprise.googleapis.com",
    "redis.googleapis.com",
    "run.googleapis.com",
    "secretmanager.googleapis.com",
    "servicecontrol.googleapis.com",
    "servicemanagement.googleapis.com",
    "servicenetworking.googleapis.com",
    "sqladmin.googleapis.com",
    "telemetry.googleapis.com",
  ])

  service            = each.key
  disable_on_destroy = false
}
