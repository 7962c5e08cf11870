# Anonymous wishlist.
module "wishlist" {
  source   = "./modules/function"
  for_each = { for name, f in local.functions : name => f if f.folder == "wishlist" }

  name     = each.key
  function = merge(each.value, local.size[each.key])
  common   = local.common

  environment = merge(local.environment.public, local.environment.redis, local.environment.database, local.environment.guest, {
    DATABASE_MAX_CONNS = tostring(each.value.connections)
  })

  secrets  = { for name in local.guest_secrets : name => local.secrets[name] }
  roles    = local.guest_roles
  invokers = { gateway = google_service_account.gateway.member }
}
