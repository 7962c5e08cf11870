# Alerts for Redis and Postgres.
locals {
  redis    = "resource.type=\"redis_instance\" AND resource.label.instance_id=ends_with(\"/instances/${var.redis}\")"
  postgres = "resource.type=\"cloudsql_database\" AND resource.label.database_id=\"${var.project}:${var.postgres.name}\""

  # Alert threshold for open connections.
  connections = floor(var.thresholds.postgres_connections * var.postgres.max_connections)

  store_alerts = {
    redis-memory = {
      title    = "Redis is nearly full"
      severity = "ticket"
      runbook  = "redis"
      conditions = [{
        filter   = "metric.type=\"redis.googleapis.com/stats/memory/usage_ratio\" AND ${local.redis}"
        align    = "ALIGN_MEAN"
        reduce   = "REDUCE_MAX"
        above    = var.thresholds.redis_memory
        duration = "900s"
      }]
    }

    redis-evictions = {
      title    = "Redis evicts unexpired keys"
      severity = "ticket"
      runbook  = "redis"
      conditions = [{
        filter   = "metric.type=\"redis.googleapis.com/stats/evicted_keys\" AND ${local.redis}"
        reduce   = "REDUCE_MAX"
        above    = 0
        duration = "300s"
      }]
    }

    redis-unavailable = {
      title      = "Sessions cannot be read or saved"
      severity   = "page"
      runbook    = "redis"
      combiner   = "AND"
      conditions = [local.min_traffic, { filter = local.metric.sessions_lost, period = "60s", above = 10, duration = "120s" }]
    }

    postgres-connections = {
      title    = "Postgres has few free connections"
      severity = "page"
      runbook  = "postgres"
      conditions = [{
        filter   = "metric.type=\"cloudsql.googleapis.com/database/postgresql/num_backends\" AND ${local.postgres}"
        align    = "ALIGN_MAX"
        above    = local.connections
        duration = "300s"
      }]
    }

    postgres-disk = {
      title    = "The Postgres disk is nearly full"
      severity = "ticket"
      runbook  = "postgres"
      conditions = [{
        filter   = "metric.type=\"cloudsql.googleapis.com/database/disk/utilization\" AND ${local.postgres}"
        align    = "ALIGN_MAX"
        reduce   = "REDUCE_MAX"
        above    = var.thresholds.postgres_disk
        duration = "900s"
      }]
    }

    postgres-cpu = {
      title    = "Postgres is out of CPU"
      severity = "ticket"
      runbook  = "postgres"
      conditions = [{
        filter   = "metric.type=\"cloudsql.googleapis.com/database/cpu/utilization\" AND ${local.postgres}"
        align    = "ALIGN_MEAN"
        reduce   = "REDUCE_MAX"
        above    = var.thresholds.postgres_cpu
        duration = "900s"
      }]
    }

    postgres-unavailable = {
      title    = "Postgres does not answer"
      severity = "page"
      runbook  = "postgres"
      conditions = [{
        filter   = "metric.type=\"cloudsql.googleapis.com/database/up\" AND ${local.postgres}"
        align    = "ALIGN_MAX"
        period   = "60s"
        reduce   = "REDUCE_MAX"
        below    = 1
        duration = "120s"
      }]
    }
  }
}
