variable "project" {
  description = "Id of the project."
  type        = string
}

variable "environment" {
  description = "staging or production: stands in every title."
  type        = string
}

variable "functions" {
  description = "Deployed entry points by name: the name the code registers, what they are, their Cloud Run service, their most instances."
  type        = map(object({ entry = string, kind = string, service = string, max_instances = number }))
}

variable "jobs" {
  description = "Names in var.functions of what the scheduler starts; the relay each minute, the others once a day."
  type        = set(string)
}

variable "event_dead_letters" {
  description = "Pull subscriptions with the platform's events that had no effect."
  type        = set(string)
}

variable "job_dead_letters" {
  description = "Pull subscriptions with ticks that nobody took."
  type        = set(string)
}

variable "event_subscriptions" {
  description = "Subscriptions by which the platform's events are pushed."
  type        = set(string)
}

variable "rotation_subscription" {
  description = "Where it is said that a key is to be changed."
  type        = string
}

variable "redis" {
  description = "Name of the Redis instance."
  type        = string
}

variable "postgres" {
  description = "Name of the Cloud SQL instance, and how many connections it allows."
  type        = object({ name = string, max_connections = number })
}

variable "host" {
  description = "The host that guests' pages call."
  type        = string
}

variable "channels" {
  description = "Who is told: e-mail addresses, and ids of channels made by hand, whose keys Terraform should not have."
  type = object({
    page_emails   = optional(set(string), [])
    ticket_emails = optional(set(string), [])
    page          = optional(list(string), [])
    ticket        = optional(list(string), [])
  })

  validation {
    condition     = alltrue([for e in setunion(var.channels.page_emails, var.channels.ticket_emails) : can(regex("^[^@ ]+@[^@ ]+\\.[a-z]+$", e))])
    error_message = "An address is written name@host."
  }

  validation {
    condition     = alltrue([for c in concat(var.channels.page, var.channels.ticket) : can(regex("^projects/[^/]+/notificationChannels/[0-9]+$", c))])
    error_message = "A channel is written projects/P/notificationChannels/N."
  }
}

variable "runbooks_url" {
  description = "Where docs/runbooks can be read, without a slash at the end; null: an alert names the file only."
  type        = string
  default     = null

  validation {
    condition     = var.runbooks_url == null || can(regex("^https://.*[^/]$", var.runbooks_url))
    error_message = "An https address without a slash at its end."
  }
}

variable "thresholds" {
  description = "From where on somebody is told. Shares are of 1."
  type = object({
    outbox_late_seconds     = optional(number, 300)   # the relay itself warns from there on
    outbox_slow_seconds     = optional(number, 60)    # docs/spec/limits.md#service-level-objectives
    outbox_depth            = optional(number, 50000) # rows
    outbox_parked_known     = optional(number, 0)     # rows that nobody can mend, and everybody knows of
    cache_hits_target       = optional(number, 0.6)
    cache_hits_failing      = optional(number, 0.4)
    handoffs_forged         = optional(number, 5)  # tokens that were not ours, in 10 minutes
    handoffs_replayed       = optional(number, 20) # second uses, in an hour
    bots_share              = optional(number, 0.2)
    limited_share           = optional(number, 0.05)
    degraded_share          = optional(number, 0.05)
    client_errors_share     = optional(number, 0.1)
    failures_of_a_handful   = optional(number, 10) # requests that must have failed before a share of them wakes somebody
    breaker_refusals        = optional(number, 20) # requests in 5 minutes that an open breaker touched
    redis_memory            = optional(number, 0.8)
    postgres_connections    = optional(number, 0.8)
    postgres_disk           = optional(number, 0.85)
    postgres_cpu            = optional(number, 0.9)
    event_wait_seconds      = optional(number, 600)
    least_requests_a_second = optional(number, 0.5) # below that a share of them says nothing
  })
  default  = {}
  nullable = false

  validation {
    condition     = alltrue([for t in values(var.thresholds) : t >= 0])
    error_message = "No threshold is below 0."
  }

  validation {
    condition = alltrue([for name, t in var.thresholds : t > 0 && t < 1 if contains([
      "cache_hits_target", "cache_hits_failing", "bots_share", "limited_share", "degraded_share", "client_errors_share",
      "redis_memory", "postgres_connections", "postgres_disk", "postgres_cpu",
    ], name)])
    error_message = "A share is between 0 and 1."
  }

  validation {
    condition     = var.thresholds.cache_hits_failing < var.thresholds.cache_hits_target
    error_message = "The cache fails below its target."
  }

  validation {
    condition     = var.thresholds.outbox_slow_seconds < var.thresholds.outbox_late_seconds
    error_message = "Events are slow before they are late."
  }
}
