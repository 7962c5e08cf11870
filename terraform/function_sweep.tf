# Sweeps delete expired rows. Each sweep runs one at a time.
module "sweep" {
  source   = "./modules/function"
  for_each = { for name, f in local.functions : name => f if f.folder == "sweep" }

  name     = each.key
  function = merge(each.value, local.size[each.key])
  common   = local.common

  environment = merge(local.environment.private, each.key == "sweep-sessions" ? local.environment.redis : {}, local.environment.database, {
    SWEEP_RUN = var.sweep_run
  })

  secrets  = { for name in(each.key == "sweep-sessions" ? ["REDIS_PASSWORD"] : []) : name => local.secrets[name] }
  roles    = local.base_roles
  invokers = { pubsub = google_service_account.pusher.member }
}
