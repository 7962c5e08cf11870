# A tenant's BFF consumes a handoff once. The platform and the code both authenticate the caller:
# the caller sends one token in X-Serverless-Authorization, which the platform checks and strips,
# and a second token in Authorization for the code.
module "consume" {
  source   = "./modules/function"
  for_each = { for name, f in local.functions : name => f if f.folder == "consume" }

  name     = each.key
  function = merge(each.value, local.size[each.key])
  common   = local.common

  environment = merge(local.environment.private, local.environment.redis, local.environment.database, {
    DATABASE_MAX_CONNS = tostring(each.value.connections)
    CALLER_ISSUER      = "https://accounts.google.com"
    CALLER_KEYS        = "https://www.googleapis.com/oauth2/v3/certs"
    CALLER_AUDIENCE    = var.consume_audience
    CALLER_ACCOUNTS    = join(",", var.consume_callers)
  })

  secrets  = { for name in ["REDIS_PASSWORD", "HANDOFF_KEYS", "PEPPERS"] : name => local.secrets[name] }
  roles    = local.base_roles
  invokers = { for account in var.consume_callers : account => "serviceAccount:${account}" }
}
