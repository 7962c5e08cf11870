# Redis and Postgres.
locals {
  redis    = "resource.type=\"redis_instance\" AND resource.label.instance_id=ends_with(\"/instances/${var.redis}\")"
  postgres = "resource.type=\"cloudsql_database\" AND resource.label.database_id=\"${var.project}:${var.postgres.name}\""

  # From where on there are few left.
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

    redis-evicts = {
      title    = "Redis drops what has not ended"
      severity = "ticket"
      runbook  = "redis"
      conditions = [{
        filter   = "metric.type=\"redis.googleapis.com/stats/evicted_keys\" AND ${local.redis}"
        reduce   = "REDUCE_MAX"
        above    = 0
        duration = "300s"
      }]
    }

    redis-away = {
      title      = "Sessions cannot be read or kept"
      severity   = "page"
      runbook    = "redis"
      combiner   = "AND"
      conditions = [local.busy, { filter = local.metric.sessions_lost, period = "60s", above = 10, duration = "120s" }]
    }

    postgres-connections = {
      title    = "Postgres has few connections left"
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
      title    = "The disk of Postgres is nearly full"
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

    postgres-busy = {
      title    = "Postgres has no time left"
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

    postgres-away = {
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
