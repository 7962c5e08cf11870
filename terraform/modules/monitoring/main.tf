# Who is told what: metrics counted from the functions' log records, objectives, alerts, dashboards. Every alert is an entry of one
# of the maps local.*_alerts, with the runbook in docs/runbooks that says what to do; a test holds the two against each other,
# and every field that is read here against what the functions write.

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
  # Services by what they are, as metrics of Cloud Run name them.
  services = { for kind in ["public", "internal", "event", "job"] :
  kind => sort([for name, f in var.functions : f.service if f.kind == kind]) }

  # The jobs are Cloud Run services too, and so is Consume: what guests wait for are the public ones.
  one_public = "one_of(${join(",", formatlist("\"%s\"", local.services.public))})"
  guests     = "resource.type=\"cloud_run_revision\" AND resource.label.service_name=${local.one_public}"

  requests_of = "metric.type=\"run.googleapis.com/request_count\" AND resource.type=\"cloud_run_revision\" AND resource.label.service_name"
  requests    = "${local.requests_of}=${local.one_public}"
}
