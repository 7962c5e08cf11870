# Schema migrations. A person or a pipeline calls the function before the code that needs the new
# schema is deployed: docs/decisions/0033-schema-migrations-as-a-function.md.
module "migrate" {
  source   = "./modules/function"
  for_each = { for name, f in local.functions : name => f if f.folder == "migrate" }

  name     = each.key
  function = merge(each.value, local.size[each.key])
  common   = local.common

  environment = merge(local.environment.private, local.environment.database, {
    DATABASE_USERS = join(",", concat([for name in keys(local.functions) : "bffc-${name}@${var.project}.iam" if name != "migrate"], values(local.operators)))
  })

  secrets  = { for name in [] : name => local.secrets[name] }
  roles    = local.base_roles
  invokers = { for member in var.deployers : member => member }
}
