# Platform events: cache invalidation and tenant suspension.
module "invalidate" {
  source   = "./modules/function"
  for_each = { for name, f in local.functions : name => f if f.folder == "invalidate" }

  name     = each.key
  function = merge(each.value, local.size[each.key])
  common   = local.common

  environment = merge(local.environment.private, local.environment.redis, local.environment.database, {
    DATABASE_MAX_CONNS = tostring(each.value.connections)
  })

  secrets  = { for name in ["REDIS_PASSWORD"] : name => local.secrets[name] }
  roles    = local.base_roles
  invokers = { pubsub = google_service_account.pusher.member }
}
