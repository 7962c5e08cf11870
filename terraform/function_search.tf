# Finding hotels: the list, the map and the facets.
module "search" {
  source   = "./modules/function"
  for_each = { for name, f in local.functions : name => f if f.folder == "search" }

  name            = each.key
  folder          = each.value.folder
  entry_point     = each.value.entry
  kind            = each.value.kind
  timeout_seconds = each.value.timeout

  memory        = local.size[each.key].memory
  concurrency   = local.size[each.key].concurrency
  min_instances = local.size[each.key].min_instances
  max_instances = local.size[each.key].max_instances

  environment = merge(local.environment.public, local.environment.redis, local.environment.database, local.environment.direct, local.environment.guest, {
    DATABASE_MAX_CONNS = tostring(each.value.connections)
  })

  secrets       = { for name in local.guest_secrets : name => local.secrets[name] }
  database_user = true
  roles         = local.direct_guest_roles
  invokers      = { gateway = google_service_account.gateway.member }

  runtime        = var.runtime
  builder        = local.common.builder
  network        = local.common.network
  source_archive = local.common.source[each.value.folder]
  project        = var.project
  region         = var.region
}
