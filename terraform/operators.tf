# Who is on call looks into Postgres as themselves, and mends the outbox: docs/runbooks/README.md. Migrate lets them use what the functions
# may use.
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
  description = "Who is on call and looks into Postgres: user:… or group:…"
  type        = list(string)

  validation {
    condition     = length(var.operators) > 0 && alltrue([for m in var.operators : can(regex("^(user|group):[^@,]+@[^@,]+$", m))])
    error_message = "At least one of user:… or group:…"
  }

  validation {
    condition     = !anytrue([for m in var.operators : can(regex("[@.]example\\.(com|net|org)$", m))])
    error_message = "Those of example.com are examples: name who is on call here."
  }
}
