variable "project" {
  description = "Id of the Google Cloud project."
  type        = string
}

variable "environment" {
  description = "staging or production. Part of every alert title."
  type        = string
}

variable "functions" {
  description = "Deployed entry points by name: the name registered in code, the kind, the Cloud Run service, and the maximum number of instances."
  type        = map(object({ entry = string, kind = string, service = string, max_instances = number }))
}

variable "jobs" {
  description = "Names in var.functions of scheduled jobs. The relay runs every minute, the others once a day."
  type        = set(string)
}

variable "event_dead_letters" {
  description = "Pull subscriptions with dead letters of platform events."
  type        = set(string)
}

variable "job_dead_letters" {
  description = "Pull subscriptions with dead letters of job ticks."
  type        = set(string)
}

variable "event_subscriptions" {
  description = "Push subscriptions for platform events."
  type        = set(string)
}

variable "rotation_subscription" {
  description = "Pull subscription with key rotation notices."
  type        = string
}

variable "redis" {
  description = "Name of the Redis instance."
  type        = string
}

variable "postgres" {
  description = "Name of the Cloud SQL instance and its maximum number of connections."
  type        = object({ name = string, max_connections = number })
}

variable "host" {
  description = "Host name of the public endpoint."
  type        = string
}

variable "channels" {
  description = "Recipients of alerts: e-mail addresses, and ids of channels created by hand, because Terraform must not know their keys."
  type = object({
    page_emails   = optional(set(string), [])
    ticket_emails = optional(set(string), [])
    page          = optional(list(string), [])
    ticket        = optional(list(string), [])
  })

  validation {
    condition     = alltrue([for e in setunion(var.channels.page_emails, var.channels.ticket_emails) : can(regex("^[^@ ]+@[^@ ]+\\.[a-z]+$", e))])
    error_message = "An e-mail address has the form name@host.tld."
  }

  validation {
    condition     = alltrue([for c in concat(var.channels.page, var.channels.ticket) : can(regex("^projects/[^/]+/notificationChannels/[0-9]+$", c))])
    error_message = "A channel has the form projects/P/notificationChannels/N."
  }
}

variable "runbooks_url" {
  description = "URL of docs/runbooks without a trailing slash. null: alerts name the file without a link."
  type        = string
  default     = null

  validation {
    condition     = var.runbooks_url == null || can(regex("^https://.*[^/]$", var.runbooks_url))
    error_message = "Must be an https URL without a trailing slash."
  }
}

variable "thresholds" {
  description = "Alert thresholds. A share is a number between 0 and 1."
  type = object({
    outbox_late_seconds     = optional(number, 300)   # equals the relay's own warning threshold
    outbox_slow_seconds     = optional(number, 60)    # docs/spec/limits.md#service-level-objectives
    outbox_depth            = optional(number, 50000) # rows
    outbox_parked_known     = optional(number, 0)     # parked rows that cannot be repaired and are known
    cache_hits_target       = optional(number, 0.6)
    cache_hits_failing      = optional(number, 0.4)
    handoffs_forged         = optional(number, 5)  # forged tokens in 10 minutes
    handoffs_replayed       = optional(number, 20) # second uses in an hour
    bots_share              = optional(number, 0.2)
    limited_share           = optional(number, 0.05)
    degraded_share          = optional(number, 0.05)
    client_errors_share     = optional(number, 0.1)
    min_failures            = optional(number, 10) # failed requests before a burn-rate alert can fire
    breaker_refusals        = optional(number, 20) # requests in 5 minutes that met an open breaker
    redis_memory            = optional(number, 0.8)
    postgres_connections    = optional(number, 0.8)
    postgres_disk           = optional(number, 0.85)
    postgres_cpu            = optional(number, 0.9)
    event_wait_seconds      = optional(number, 600)
    min_requests_per_second = optional(number, 0.5) # below this rate, ratio alerts do not fire
  })
  default  = {}
  nullable = false

  validation {
    condition     = alltrue([for t in values(var.thresholds) : t >= 0])
    error_message = "A threshold must not be negative."
  }

  validation {
    condition = alltrue([for name, t in var.thresholds : t > 0 && t < 1 if contains([
      "cache_hits_target", "cache_hits_failing", "bots_share", "limited_share", "degraded_share", "client_errors_share",
      "redis_memory", "postgres_connections", "postgres_disk", "postgres_cpu",
    ], name)])
    error_message = "A share must be between 0 and 1."
  }

  validation {
    condition     = var.thresholds.cache_hits_failing < var.thresholds.cache_hits_target
    error_message = "cache_hits_failing must be below cache_hits_target."
  }

  validation {
    condition     = var.thresholds.outbox_slow_seconds < var.thresholds.outbox_late_seconds
    error_message = "outbox_slow_seconds must be below outbox_late_seconds."
  }
}
