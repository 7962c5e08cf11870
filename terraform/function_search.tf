# Hotel search: list, map and facets.
module "search" {
  source   = "./modules/function"
  for_each = { for name, f in local.functions : name => f if f.folder == "search" }

  name     = each.key
  function = merge(each.value, local.size[each.key])
  common   = local.common

  environment = merge(local.environment.public, local.environment.redis, local.environment.database, local.environment.direct, local.environment.guest, {
    DATABASE_MAX_CONNS = tostring(each.value.connections)
  })

  secrets  = { for name in local.guest_secrets : name => local.secrets[name] }
  roles    = local.direct_guest_roles
  invokers = { gateway = google_service_account.gateway.member }
}
