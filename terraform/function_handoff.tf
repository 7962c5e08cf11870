# Handoff to a tenant's booking page.
module "handoff" {
  source   = "./modules/function"
  for_each = { for name, f in local.functions : name => f if f.folder == "handoff" }

  name     = each.key
  function = merge(each.value, local.size[each.key])
  common   = local.common

  environment = merge(local.environment.public, local.environment.redis, local.environment.database, local.environment.guest, {
    DATABASE_MAX_CONNS = tostring(each.value.connections)
    HANDOFF_LINK       = var.handoff_link
  })

  secrets  = { for name in concat(local.guest_secrets, ["HANDOFF_KEYS"]) : name => local.secrets[name] }
  roles    = local.guest_roles
  invokers = { gateway = google_service_account.gateway.member }
}
