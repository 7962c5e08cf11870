# Outbox relay. One instance drains all shards; a second instance exists while the first is
# replaced.
module "relay" {
  source   = "./modules/function"
  for_each = { for name, f in local.functions : name => f if f.folder == "relay" }

  name     = each.key
  function = merge(each.value, local.size[each.key])
  common   = local.common

  environment = merge(local.environment.private, local.environment.redis, local.environment.database, local.environment.direct, {
    RELAY_MAX_CONNS = tostring(each.value.connections)
    RELAY_RUN       = var.relay.run
    RELAY_WORKERS   = tostring(var.relay.workers)
    PUBSUB_PROJECT  = var.project
    PUBSUB_ENDPOINT = "${var.region}-pubsub.googleapis.com:443"
  })

  secrets  = { for name in ["REDIS_PASSWORD"] : name => local.secrets[name] }
  roles    = local.direct_roles
  invokers = { pubsub = google_service_account.pusher.member }
}
