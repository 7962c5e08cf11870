# The APIs of a project that was empty. One is not switched off again when it leaves this list: others may use it. Those that
# Terraform itself works with are on before: cloudresourcemanager, iam, serviceusage, storage (docs/deploy.md).
resource "google_project_service" "this" {
  for_each = toset([
    "apigateway.googleapis.com",
    "artifactregistry.googleapis.com",
    "cloudbuild.googleapis.com",
    "cloudfunctions.googleapis.com",
    "cloudscheduler.googleapis.com",
    "cloudtrace.googleapis.com", # without it what telemetry.googleapis.com takes of traces is thrown away
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
