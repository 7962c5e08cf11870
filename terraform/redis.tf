# Redis holds disposable data: copies of sessions, caches, rate limits. A replica in another zone
# takes over within seconds. No TLS: docs/decisions/0032-redis-auth-without-tls.md.
resource "google_redis_instance" "this" {
  name           = local.name
  tier           = "STANDARD_HA"
  memory_size_gb = var.redis_memory_gb
  redis_version  = "REDIS_7_2"
  region         = var.region

  authorized_network      = google_compute_network.this.id
  connect_mode            = "PRIVATE_SERVICE_ACCESS"
  auth_enabled            = true
  transit_encryption_mode = "DISABLED"

  redis_configs = {
    # Every key has a TTL. When memory is full, Redis evicts the least frequently used keys.
    maxmemory-policy = "volatile-lfu"
  }

  deletion_protection = var.deletion_protection

  depends_on = [google_service_networking_connection.services]
}

resource "google_secret_manager_secret" "redis_password" {
  secret_id = "${local.name}-redis-password"

  replication {
    auto {}
  }

  depends_on = [google_project_service.this]
}

resource "google_secret_manager_secret_version" "redis_password" {
  secret      = google_secret_manager_secret.redis_password.id
  secret_data = google_redis_instance.this.auth_string

  # Instances of the previous revision mount the previous version, also after a rollback.
  deletion_policy = "ABANDON"
}
