variable "cadence" {
  description = "Other times for jobs, by function, as cron has it in UTC: { sweep-outbox = \"17 2 * * *\" }."
  type        = map(string)
  default     = {}

  validation {
    condition     = alltrue([for c in values(var.cadence) : can(regex("^([0-9*,/-]+ ){2}[0-9*,/-]+ [0-9A-Za-z*,/-]+ [0-9A-Za-z*,/-]+$", c))])
    error_message = "A cadence is cron with five fields: minute, hour, day, month, day of the week."
  }

  validation {
    condition     = alltrue([for name in keys(var.cadence) : contains(keys(local.jobs), name)])
    error_message = "A cadence is for a job of scheduler.tf."
  }
}

variable "consume_audience" {
  description = "The aud of the token in Authorization at consume: this service's own name, agreed with the tenants' BFFs."
  type        = string

  validation {
    condition     = length(var.consume_audience) > 0
    error_message = "Without an audience a token for any service would do."
  }
}

variable "consume_callers" {
  description = "Service accounts of tenants' BFFs that may use a handoff, by address."
  type        = list(string)

  validation {
    condition     = length(var.consume_callers) > 0 && alltrue([for a in var.consume_callers : can(regex("^[^@:]+@[^@]+\\.gserviceaccount\\.com$", a))])
    error_message = "At least one service account: name@project.iam.gserviceaccount.com, without a prefix."
  }
}

variable "deletion_protection" {
  description = "Whether Terraform refuses to delete Redis and Postgres."
  type        = bool
  default     = true
}

variable "deployers" {
  description = "Who may migrate the schema: user:…, group:… or serviceAccount:…"
  type        = list(string)

  validation {
    condition     = length(var.deployers) > 0 && alltrue([for m in var.deployers : can(regex("^(user|group|serviceAccount):[^@]+@[^@]+$", m))])
    error_message = "At least one of user:…, group:… or serviceAccount:…"
  }

  validation {
    condition     = !anytrue([for m in var.deployers : can(regex("[@.]example\\.(com|net|org)$", m))])
    error_message = "Those of example.com are examples: name who deploys here."
  }
}

variable "edge" {
  description = "The load balancer in front of the gateway; null: guests call the gateway's own host."
  type = object({
    domain              = string                 # its name: api.melmastoon.ghasi.io
    requests_per_minute = optional(number, 6000) # of one address, before it is refused for five minutes
    log_sample          = optional(number, 0.1)  # share of requests that are logged there
  })
  default = null

  validation {
    condition     = var.edge == null || can(regex("^[a-z0-9.-]+\\.[a-z]+$", var.edge.domain))
    error_message = "The domain is a host name."
  }

  validation {
    condition     = var.edge == null || try(var.edge.log_sample >= 0 && var.edge.log_sample <= 1, false)
    error_message = "The share of requests that are logged is from 0 to 1."
  }
}

variable "edge_secrets" {
  description = "What the edge adds to requests, first, and, while it changes, what it added before. From the environment: TF_VAR_edge_secrets."
  type        = list(string)
  default     = []
  sensitive   = true

  validation {
    condition     = alltrue([for s in var.edge_secrets : can(regex("^[A-Za-z0-9_-]{32,}$", s))]) && length(var.edge_secrets) <= 2
    error_message = "One or two secrets, each of 32 or more letters, digits, _ and -."
  }

  validation {
    condition     = var.edge == null || length(var.edge_secrets) > 0
    error_message = "An edge needs a secret, or it can be gone around."
  }
}

variable "environment" {
  description = "Which of the system's environments this is; first part of every Redis key."
  type        = string

  validation {
    condition     = contains(["staging", "production"], var.environment)
    error_message = "An environment is staging or production."
  }
}

variable "functions_cidr" {
  description = "Addresses for instances: a /24 has room for 60."
  type        = string
  default     = "10.20.0.0/23"

  validation {
    condition     = can(cidrnetmask(var.functions_cidr)) && try(tonumber(split("/", var.functions_cidr)[1]) <= 26, false)
    error_message = "A range of IPv4 addresses, /26 or larger."
  }
}

variable "gateway_region" {
  description = "Where the gateway is: API Gateway is in few regions. null: where the functions are."
  type        = string
  default     = null

  validation {
    condition = contains([
      "asia-northeast1", "australia-southeast1", "europe-west1", "europe-west2",
      "us-central1", "us-east1", "us-east4", "us-west2", "us-west3", "us-west4",
    ], coalesce(var.gateway_region, var.region))
    error_message = "API Gateway is not there; docs/decisions/0034-api-gateway-region.md."
  }
}

variable "handoff_link" {
  description = "Where a tenant's guests book."
  type        = string
  default     = "https://{tenantSlug}.melmastoon.ghasi.io/book"

  validation {
    condition     = startswith(var.handoff_link, "https://") && strcontains(var.handoff_link, "{tenantSlug}")
    error_message = "An https URL with {tenantSlug} in it."
  }
}

variable "next_rotation_time" {
  description = "When it is first said that a key is to be changed, RFC 3339; later than the first apply."
  type        = string

  validation {
    condition     = can(timeadd(var.next_rotation_time, "0s"))
    error_message = "A time such as 2027-04-01T06:00:00Z."
  }
}

variable "packs_dir" {
  description = "Where `./dev pack all --out DIR` put the archives."
  type        = string
}

variable "page_origins" {
  description = "Whose pages may call with cookies and change something: https://www.melmastoon.ghasi.io."
  type        = list(string)

  validation {
    condition     = length(var.page_origins) > 0 && alltrue([for o in var.page_origins : can(regex("^https://[a-z0-9.-]+(:[0-9]+)?$", o))])
    error_message = "At least one origin: https and a host, without a path."
  }
}

variable "platform_project" {
  description = "The project of the platform's topics, if it is not this one."
  type        = string
  default     = null
}

variable "postgres_availability" {
  description = "REGIONAL has a standby in another zone; ZONAL has none."
  type        = string
  default     = "REGIONAL"

  validation {
    condition     = contains(["REGIONAL", "ZONAL"], var.postgres_availability)
    error_message = "REGIONAL or ZONAL."
  }
}

variable "postgres_max_connections" {
  description = "Connections that Postgres allows; a check compares it with what the functions may open."
  type        = number
  default     = 400
}

variable "postgres_reserved_connections" {
  description = "Of those, what is left for Google, backups and people."
  type        = number
  default     = 25
}

variable "postgres_tier" {
  description = "Machine of Postgres: db-custom-<processors>-<MiB>."
  type        = string
  default     = "db-custom-2-7680"

  validation {
    condition     = can(regex("^db-custom-[0-9]+-[0-9]+$", var.postgres_tier))
    error_message = "A machine such as db-custom-2-7680."
  }
}

variable "postgres_version" {
  description = "Of Postgres."
  type        = string
  default     = "POSTGRES_16"

  validation {
    condition     = contains(["POSTGRES_15", "POSTGRES_16", "POSTGRES_17"], var.postgres_version)
    error_message = "POSTGRES_15, POSTGRES_16 or POSTGRES_17: what the code is tested with is 15."
  }
}

variable "project" {
  description = "Id of the project: one for each environment."
  type        = string

  validation {
    condition     = can(regex("^[a-z][a-z0-9-]{4,28}[a-z0-9]$", var.project))
    error_message = "Not an id of a project."
  }
}

variable "project_number" {
  description = "Its number: Google's own accounts in the project are called by it."
  type        = string

  validation {
    condition     = can(regex("^[0-9]+$", var.project_number))
    error_message = "Digits only."
  }
}

variable "recaptcha" {
  description = "Whether pages of page_origins may prove a guest by reCAPTCHA Enterprise, which bills each token that is looked at."
  type        = bool
  default     = false
}

variable "redis_memory_gb" {
  description = "Memory of Redis."
  type        = number
  default     = 1

  validation {
    condition     = var.redis_memory_gb >= 1 && var.redis_memory_gb <= 300 && floor(var.redis_memory_gb) == var.redis_memory_gb
    error_message = "Whole gigabytes from 1 to 300."
  }
}

variable "region" {
  description = "Where everything is that is not of the whole world."
  type        = string
  default     = "asia-south1"

  validation {
    condition     = can(regex("^[a-z]+-[a-z]+[0-9]+$", var.region))
    error_message = "A region such as asia-south1."
  }
}

variable "relay" {
  description = "How long a run publishes, how many lanes it drains at once, and its pool: one connection for each worker and two more."
  type = object({
    run         = optional(string, "57s")
    workers     = optional(number, 4)
    connections = optional(number, 6)
  })
  default = {}

  validation {
    condition     = can(regex("^[0-9]+s$", var.relay.run)) && try(tonumber(trimsuffix(var.relay.run, "s")) <= 60, false)
    error_message = "A run takes seconds with their unit, 60s at most: 57s."
  }

  validation {
    condition     = var.relay.workers >= 1 && var.relay.connections >= var.relay.workers + 2
    error_message = "The relay needs a connection for each worker and two more."
  }
}

variable "remote_config_project" {
  description = "The project whose Remote Config has the flags, if it is not this one; the functions' accounts must be let in there."
  type        = string
  default     = null
}

variable "rotation_period" {
  description = "How often it is said that a key is to be changed: seconds with their unit, an hour at least."
  type        = string
  default     = "7776000s" # 90 days

  validation {
    condition     = can(regex("^[0-9]+s$", var.rotation_period)) && try(tonumber(trimsuffix(var.rotation_period, "s")) >= 3600, false)
    error_message = "Seconds with their unit, an hour at least: 7776000s."
  }
}

variable "runtime" {
  description = "The platform's Go."
  type        = string
  default     = "go126"

  validation {
    condition     = can(regex("^go1[0-9]{2}$", var.runtime))
    error_message = "A runtime such as go126."
  }
}

variable "secret_versions" {
  description = "Which version of each key ring is deployed, by environment variable."
  type        = map(string)
  default     = { SESSION_KEYS = "1", PEPPERS = "1", HANDOFF_KEYS = "1" }

  validation {
    condition     = toset(keys(var.secret_versions)) == toset(["SESSION_KEYS", "PEPPERS", "HANDOFF_KEYS"]) && alltrue([for v in values(var.secret_versions) : can(regex("^[0-9]+$", v))])
    error_message = "A number for each of SESSION_KEYS, PEPPERS and HANDOFF_KEYS; not \"latest\", which instances would read at different times."
  }
}

variable "sizes" {
  description = "What differs from functions.tf for a function: memory, concurrency, min_instances, max_instances."
  type = map(object({
    memory        = optional(string)
    concurrency   = optional(number)
    min_instances = optional(number)
    max_instances = optional(number)
  }))
  default = {}

  validation {
    condition     = alltrue([for name in keys(var.sizes) : contains(keys(local.functions), name)])
    error_message = "A size is for a function of functions.tf."
  }
}

variable "sweep_run" {
  description = "After which a sweep ends, finished or not: 5m; 9m at most."
  type        = string
  default     = "5m"

  validation {
    condition     = can(regex("^([1-9]m|([1-9][0-9]?|[1-4][0-9]{2}|5[0-3][0-9]|540)s)$", var.sweep_run))
    error_message = "Minutes or seconds with their unit, 9m at most."
  }
}

variable "telemetry" {
  description = "Where traces and metrics go by OTLP over HTTP, and the share of traces that begin here which is kept; null: nowhere."
  type = object({
    endpoint    = optional(string, "https://telemetry.googleapis.com") # /v1/traces and /v1/metrics come behind it
    trace_share = optional(number, 0.05)
  })
  default = {}

  validation {
    condition     = var.telemetry == null || can(regex("^https?://[^/?#@ ]+(/[^?#@ ]*[^/?#@ ])?$", var.telemetry.endpoint))
    error_message = "The endpoint is a base URL, http or https, without a name in it, a query or a / at its end."
  }

  validation {
    condition     = var.telemetry == null || try(var.telemetry.trace_share >= 0 && var.telemetry.trace_share <= 1, false)
    error_message = "The share of traces that is kept is from 0 to 1."
  }
}

variable "trusted_hops" {
  description = "Our proxies' entries at the end of X-Forwarded-For, if locals.tf is wrong about them."
  type        = number
  default     = null

  validation {
    condition     = var.trusted_hops == null || try(var.trusted_hops >= 1 && var.trusted_hops <= 8, false)
    error_message = "From 1 to 8."
  }
}

variable "upstreams" {
  description = "Addresses of the services that answers are made from."
  type        = object({ search = string, pricing = string, property = string, theme = string })

  validation {
    condition     = alltrue([for url in values(var.upstreams) : can(regex("^https://[^/]+$", url))])
    error_message = "An https address without a path for each."
  }
}
