# What the platform tells of changes.
module "invalidate" {
  source   = "./modules/function"
  for_each = { for name, f in local.functions : name => f if f.folder == "invalidate" }

  name            = each.key
  folder          = each.value.folder
  entry_point     = each.value.entry
  kind            = each.value.kind
  timeout_seconds = each.value.timeout

  memory        = local.size[each.key].memory
  concurrency   = local.size[each.key].concurrency
  min_instances = local.size[each.key].min_instances
  max_instances = local.size[each.key].max_instances

  environment = merge(local.environment.private, local.environment.redis, local.environment.database, {
    DATABASE_MAX_CONNS = tostring(each.value.connections)
  })

  secrets       = { for name in ["REDIS_PASSWORD"] : name => local.secrets[name] }
  database_user = true
  roles         = local.base_roles
  invokers      = { pubsub = google_service_account.pusher.member }

  runtime        = var.runtime
  builder        = local.common.builder
  network        = local.common.network
  source_archive = local.common.source[each.value.folder]
  project        = var.project
  region         = var.region
}
