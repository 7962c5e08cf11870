# People on call log in to Postgres with their own accounts and repair the outbox
# (docs/runbooks/README.md). Migrate grants them the same rights as the functions.
locals {
  operators = { for member in var.operators : member => lower(split(":", member)[1]) }
}

resource "google_sql_user" "operator" {
  for_each = local.operators

  name     = each.value
  instance = google_sql_database_instance.this.name
  type     = startswith(each.key, "group:") ? "CLOUD_IAM_GROUP" : "CLOUD_IAM_USER"

  deletion_policy = "ABANDON" # see sql.tf
}

resource "google_project_iam_member" "operator" {
  for_each = { for pair in setproduct(keys(local.operators), ["roles/cloudsql.client", "roles/cloudsql.instanceUser"]) : join(" ", pair) => pair }

  project = var.project
  role    = each.value[1]
  member  = each.value[0]
}

variable "operators" {
  description = "Principals on call with access to Postgres: user:… or group:…"
  type        = list(string)

  validation {
    condition     = length(var.operators) > 0 && alltrue([for m in var.operators : can(regex("^(user|group):[^@,]+@[^@,]+$", m))])
    error_message = "Name at least one of user:… or group:…"
  }

  validation {
    condition     = !anytrue([for m in var.operators : can(regex("[@.]example\\.(com|net|org)$", m))])
    error_message = "example.com is a placeholder: name the principals on call for this environment."
  }
}
