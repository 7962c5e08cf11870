# What may not be forgotten. Functions log in as their own service account, without a password.
resource "google_sql_database_instance" "this" {
  name             = local.name
  database_version = var.postgres_version
  region           = var.region

  settings {
    tier              = var.postgres_tier
    edition           = "ENTERPRISE"
    availability_type = var.postgres_availability
    disk_type         = "PD_SSD"
    disk_autoresize   = true

    backup_configuration {
      enabled                        = true
      point_in_time_recovery_enabled = true
      start_time                     = "01:00" # UTC, before the sweeps
      transaction_log_retention_days = 7

      backup_retention_settings {
        retained_backups = 8 # one more than the days that can be gone back
      }
    }

    ip_configuration {
      ipv4_enabled    = false
      private_network = google_compute_network.this.id
      ssl_mode        = "ENCRYPTED_ONLY"             # the connector has a certificate; search, detail and relay have a token alone (decision 39)
      server_ca_mode  = "GOOGLE_MANAGED_INTERNAL_CA" # an authority of this instance's own: whom they trust is this instance
    }

    database_flags {
      name  = "cloudsql.iam_authentication"
      value = "on"
    }

    database_flags {
      name  = "max_connections"
      value = tostring(var.postgres_max_connections)
    }

    insights_config {
      query_insights_enabled  = true
      record_application_tags = false
      record_client_address   = false
    }

    maintenance_window {
      day          = 2
      hour         = 2 # UTC
      update_track = "stable"
    }
  }

  deletion_protection = var.deletion_protection

  depends_on = [google_service_networking_connection.services]
}

resource "google_sql_database" "this" {
  name     = "melmastoon-bff"
  instance = google_sql_database_instance.this.name

  deletion_policy = "ABANDON" # it goes with the instance: Postgres deletes none that somebody is connected to
}

resource "google_sql_user" "function" {
  for_each = local.accounts

  # Postgres knows an account by its address without the last part.
  name     = trimsuffix(each.value, ".gserviceaccount.com")
  instance = google_sql_database_instance.this.name
  type     = "CLOUD_IAM_SERVICE_ACCOUNT"
  # Migrate makes the schema, and lets the others use what it made.
  database_roles = each.key == "migrate" ? ["cloudsqlsuperuser"] : null

  deletion_policy = "ABANDON" # Postgres deletes none that owns or may do something; whoever has no account logs in no more
}

# Every function's pool, on every instance that may run, beside what Google and a person need. While a new revision takes
# over, instances of the old one are still there: the pools of both are rarely full, and what does not get a connection
# waits for one within its request's time.
check "connections_fit" {
  assert {
    condition     = local.connections + var.postgres_reserved_connections <= var.postgres_max_connections
    error_message = "The functions may open ${local.connections} connections and ${var.postgres_reserved_connections} are reserved, but Postgres allows ${var.postgres_max_connections}: fewer instances, smaller pools or a larger Postgres."
  }
}
