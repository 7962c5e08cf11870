# Alerts, dashboards and their recipients: docs/runbooks/README.md.
module "monitoring" {
  source = "./modules/monitoring"

  project     = var.project
  environment = var.environment
  host        = trimprefix(var.edge == null ? google_api_gateway_gateway.this.default_hostname : var.edge.domain, "https://")

  functions = { for name, f in local.functions : name => {
    entry = f.entry, kind = f.kind, service = local.deployed[name].service, max_instances = local.size[name].max_instances
  } }
  jobs = keys(local.jobs)

  event_dead_letters    = values(module.event)[*].dead_letters
  job_dead_letters      = values(module.tick)[*].dead_letters
  event_subscriptions   = values(module.event)[*].name
  rotation_subscription = google_pubsub_subscription.rotation.name

  redis    = google_redis_instance.this.name
  postgres = { name = google_sql_database_instance.this.name, max_connections = var.postgres_max_connections }

  channels     = var.alert_channels
  runbooks_url = var.runbooks_url
  thresholds   = var.alert_thresholds

  depends_on = [google_project_service.this]
}

check "production_alerts_have_recipients" {
  assert {
    condition     = var.environment != "production" || module.monitoring.channels.page > 0 && module.monitoring.channels.ticket > 0
    error_message = "Production needs recipients for page and ticket in alert_channels."
  }
}

variable "alert_channels" {
  description = "Recipients of alerts: e-mail addresses or channels created by hand. A page wakes the person on call, a ticket waits for the morning."
  type = object({
    page_emails   = optional(set(string), [])
    ticket_emails = optional(set(string), [])
    page          = optional(list(string), [])
    ticket        = optional(list(string), [])
  })

  validation {
    condition     = !anytrue([for e in setunion(var.alert_channels.page_emails, var.alert_channels.ticket_emails) : can(regex("[@.]example\\.(com|net|org)$", e))])
    error_message = "example.com is a placeholder: name the recipients of pages and tickets of this environment."
  }
}

variable "alert_thresholds" {
  description = "Overrides of the defaults in modules/monitoring/variables.tf: { bots_share = 0.3 }."
  type        = map(number)
  default     = {}
}

variable "runbooks_url" {
  description = "URL of docs/runbooks without a trailing slash. Alerts link to this URL."
  type        = string
  default     = null

  validation {
    condition     = !can(regex("[/.]example\\.(com|net|org)/", var.runbooks_url))
    error_message = "example.com is a placeholder: set the URL at which the person on call reads docs/runbooks."
  }
}

output "alerts" {
  description = "Runbook in docs/runbooks of each alert."
  value       = module.monitoring.alerts

  precondition {
    condition     = alltrue([for name in keys(var.alert_thresholds) : contains(keys(module.monitoring.thresholds), name)])
    error_message = "alert_thresholds contains a name that modules/monitoring/variables.tf does not define."
  }
}
