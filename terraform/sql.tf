# Postgres holds the durable data. Functions log in as their own service account, without a
# password.
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
        retained_backups = 8 # one more than the days of point-in-time recovery
      }
    }

    ip_configuration {
      ipv4_enabled    = false
      private_network = google_compute_network.this.id
      ssl_mode        = "ENCRYPTED_ONLY"             # the connector sends a client certificate; search, detail and relay send only a token (decision 39)
      server_ca_mode  = "GOOGLE_MANAGED_INTERNAL_CA" # a certificate authority of this instance only, so trust in the authority is trust in the instance
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

  deletion_policy = "ABANDON" # deleted with the instance: Postgres does not drop a database with open connections
}

resource "google_sql_user" "function" {
  for_each = local.accounts

  # The database user is the account's address without .gserviceaccount.com.
  name     = trimsuffix(each.value, ".gserviceaccount.com")
  instance = google_sql_database_instance.this.name
  type     = "CLOUD_IAM_SERVICE_ACCOUNT"
  # Migrate creates the schema and grants the other users access.
  database_roles = each.key == "migrate" ? ["cloudsqlsuperuser"] : null

  deletion_policy = "ABANDON" # Postgres does not drop a user with objects or grants; without the account the user cannot log in
}

# Connection pools of all functions at their maximum number of instances, plus reserved connections.
# During a rollout instances of the old revision still exist. The pools of both revisions are rarely
# full, and a request without a connection waits for one within its deadline.
check "connections_fit" {
  assert {
    condition     = local.connections + var.postgres_reserved_connections <= var.postgres_max_connections
    error_message = "The functions may open ${local.connections} connections and ${var.postgres_reserved_connections} are reserved, but Postgres allows ${var.postgres_max_connections}: use fewer instances, smaller pools or a larger Postgres."
  }
}
