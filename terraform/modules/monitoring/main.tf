# Monitoring: log-based metrics, service level objectives, alerts and dashboards. Every alert is an
# entry of one of the maps local.*_alerts and names a runbook in docs/runbooks. Tests compare alerts
# with runbooks, and every log field used here with the fields that the functions write.

terraform {
  required_version = ">= 1.11"

  required_providers {
    google = {
      source  = "hashicorp/google"
      version = "~> 7.39"
    }
  }
}

locals {
  # Cloud Run services by kind of function, named as in Cloud Run metrics.
  services = { for kind in ["public", "internal", "event", "job"] :
  kind => sort([for name, f in var.functions : f.service if f.kind == kind]) }

  # Only public functions serve guests; jobs and Consume are Cloud Run services too.
  one_public = "one_of(${join(",", formatlist("\"%s\"", local.services.public))})"
  guests     = "resource.type=\"cloud_run_revision\" AND resource.label.service_name=${local.one_public}"

  requests_of = "metric.type=\"run.googleapis.com/request_count\" AND resource.type=\"cloud_run_revision\" AND resource.label.service_name"
  requests    = "${local.requests_of}=${local.one_public}"
}
