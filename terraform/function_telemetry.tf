# Client telemetry: clicks, page views and funnel steps.
module "telemetry" {
  source   = "./modules/function"
  for_each = { for name, f in local.functions : name => f if f.folder == "telemetry" }

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
