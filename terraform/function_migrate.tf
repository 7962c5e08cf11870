# The newest schema, before the code that needs it: docs/decisions/0033-migrations-are-a-function.md. A person or a pipeline calls it.
module "migrate" {
  source   = "./modules/function"
  for_each = { for name, f in local.functions : name => f if f.folder == "migrate" }

  name            = each.key
  folder          = each.value.folder
  entry_point     = each.value.entry
  kind            = each.value.kind
  timeout_seconds = each.value.timeout

  memory        = local.size[each.key].memory
  concurrency   = local.size[each.key].concurrency
  min_instances = local.size[each.key].min_instances
  max_instances = local.size[each.key].max_instances

  environment = merge(local.environment.private, local.environment.database, {
    DATABASE_USERS = join(",", concat([for name in keys(local.functions) : "bffc-${name}@${var.project}.iam" if name != "migrate"], values(local.operators)))
  })

  secrets       = { for name in [] : name => local.secrets[name] }
  database_user = true
  roles         = local.base_roles
  invokers      = { for member in var.deployers : member => member }

  runtime        = var.runtime
  builder        = local.common.builder
  network        = local.common.network
  source_archive = local.common.source[each.value.folder]
  project        = var.project
  region         = var.region
}
