variable "cadence" {
  description = "Schedules that differ from scheduler.tf, by function, in cron format and UTC: { sweep-outbox = \"17 2 * * *\" }."
  type        = map(string)
  default     = {}

  validation {
    condition     = alltrue([for c in values(var.cadence) : can(regex("^([0-9*,/-]+ ){2}[0-9*,/-]+ [0-9A-Za-z*,/-]+ [0-9A-Za-z*,/-]+$", c))])
    error_message = "A cadence must be cron with five fields: minute, hour, day, month, day of the week."
  }

  validation {
    condition     = alltrue([for name in keys(var.cadence) : contains(keys(local.jobs), name)])
    error_message = "Every key of cadence must be a job of scheduler.tf."
  }
}

variable "consume_audience" {
  description = "Expected aud claim of the token in Authorization at consume: the name of this service, agreed with the tenants' BFFs."
  type        = string

  validation {
    condition     = length(var.consume_audience) > 0
    error_message = "consume_audience must not be empty: otherwise a token for any service would be accepted."
  }
}

variable "consume_callers" {
  description = "E-mail addresses of the service accounts of tenants' BFFs that may consume a handoff."
  type        = list(string)

  validation {
    condition     = length(var.consume_callers) > 0 && alltrue([for a in var.consume_callers : can(regex("^[^@:]+@[^@]+\\.gserviceaccount\\.com$", a))])
    error_message = "Name at least one service account: name@project.iam.gserviceaccount.com, without a prefix."
  }
}

variable "deletion_protection" {
  description = "Whether Terraform refuses to delete Redis and Postgres."
  type        = bool
  default     = true
}

variable "deployers" {
  description = "Principals that may migrate the schema: user:…, group:… or serviceAccount:…"
  type        = list(string)

  validation {
    condition     = length(var.deployers) > 0 && alltrue([for m in var.deployers : can(regex("^(user|group|serviceAccount):[^@]+@[^@]+$", m))])
    error_message = "Name at least one of user:…, group:… or serviceAccount:…"
  }

  validation {
    condition     = !anytrue([for m in var.deployers : can(regex("[@.]example\\.(com|net|org)$", m))])
    error_message = "example.com is a placeholder: name the principals that deploy this environment."
  }
}

variable "edge" {
  description = "The load balancer in front of the gateway. null: guests call the gateway's own host."
  type = object({
    domain              = string                 # host name: api.melmastoon.ghasi.io
    requests_per_minute = optional(number, 6000) # per client address; an address above the limit is banned for five minutes
    log_sample          = optional(number, 0.1)  # share of requests logged by the load balancer
  })
  default = null

  validation {
    condition     = var.edge == null || can(regex("^[a-z0-9.-]+\\.[a-z]+$", var.edge.domain))
    error_message = "edge.domain must be a host name."
  }

  validation {
    condition     = var.edge == null || try(var.edge.log_sample >= 0 && var.edge.log_sample <= 1, false)
    error_message = "edge.log_sample must be between 0 and 1."
  }
}

variable "edge_secrets" {
  description = "Secret that the edge adds to requests, first; during a rotation the second is the other accepted secret. Set by the environment variable TF_VAR_edge_secrets."
  type        = list(string)
  default     = []
  sensitive   = true

  validation {
    condition     = alltrue([for s in var.edge_secrets : can(regex("^[A-Za-z0-9_-]{32,}$", s))]) && length(var.edge_secrets) <= 2
    error_message = "edge_secrets must be one or two secrets of at least 32 letters, digits, _ or -."
  }

  validation {
    condition     = var.edge == null || length(var.edge_secrets) > 0
    error_message = "An edge needs a secret: otherwise requests can bypass the edge."
  }
}

variable "environment" {
  description = "Name of the environment. First part of every Redis key."
  type        = string

  validation {
    condition     = contains(["staging", "production"], var.environment)
    error_message = "environment must be staging or production."
  }
}

variable "functions_cidr" {
  description = "IPv4 range for function instances. A /24 is enough for 60 instances."
  type        = string
  default     = "10.20.0.0/23"

  validation {
    condition     = can(cidrnetmask(var.functions_cidr)) && try(tonumber(split("/", var.functions_cidr)[1]) <= 26, false)
    error_message = "functions_cidr must be an IPv4 range, /26 or larger."
  }
}

variable "gateway_region" {
  description = "Region of the API Gateway, which exists in few regions. null: the region of the functions."
  type        = string
  default     = null

  validation {
    condition = contains([
      "asia-northeast1", "australia-southeast1", "europe-west1", "europe-west2",
      "us-central1", "us-east1", "us-east4", "us-west2", "us-west3", "us-west4",
    ], coalesce(var.gateway_region, var.region))
    error_message = "API Gateway does not exist in this region: docs/decisions/0034-api-gateway-region.md."
  }
}

variable "handoff_link" {
  description = "URL template of a tenant's booking page."
  type        = string
  default     = "https://{tenantSlug}.melmastoon.ghasi.io/book"

  validation {
    condition     = startswith(var.handoff_link, "https://") && strcontains(var.handoff_link, "{tenantSlug}")
    error_message = "handoff_link must be an https URL that contains {tenantSlug}."
  }
}

variable "next_rotation_time" {
  description = "Time of the first key rotation notice, RFC 3339. Must be later than the first apply."
  type        = string

  validation {
    condition     = can(timeadd(var.next_rotation_time, "0s"))
    error_message = "next_rotation_time must be a time such as 2027-04-01T06:00:00Z."
  }
}

variable "packs_dir" {
  description = "Directory of the archives written by `./dev pack all --out DIR`."
  type        = string
}

variable "page_origins" {
  description = "Origins of the web pages that may send cookies and call mutating routes: https://www.melmastoon.ghasi.io."
  type        = list(string)

  validation {
    condition     = length(var.page_origins) > 0 && alltrue([for o in var.page_origins : can(regex("^https://[a-z0-9.-]+(:[0-9]+)?$", o))])
    error_message = "Name at least one origin: https and a host, without a path."
  }
}

variable "platform_project" {
  description = "Project of the platform's topics, if different from project."
  type        = string
  default     = null
}

variable "postgres_availability" {
  description = "REGIONAL: with a standby in another zone. ZONAL: without a standby."
  type        = string
  default     = "REGIONAL"

  validation {
    condition     = contains(["REGIONAL", "ZONAL"], var.postgres_availability)
    error_message = "postgres_availability must be REGIONAL or ZONAL."
  }
}

variable "postgres_max_connections" {
  description = "max_connections of Postgres. A check compares the number with the connections that all functions may open."
  type        = number
  default     = 400
}

variable "postgres_reserved_connections" {
  description = "Connections of postgres_max_connections reserved for Google, backups and people."
  type        = number
  default     = 25
}

variable "postgres_tier" {
  description = "Machine type of Postgres: db-custom-<CPUs>-<MiB>."
  type        = string
  default     = "db-custom-2-7680"

  validation {
    condition     = can(regex("^db-custom-[0-9]+-[0-9]+$", var.postgres_tier))
    error_message = "postgres_tier must be a machine type such as db-custom-2-7680."
  }
}

variable "postgres_version" {
  description = "Major version of Postgres."
  type        = string
  default     = "POSTGRES_16"

  validation {
    condition     = contains(["POSTGRES_15", "POSTGRES_16", "POSTGRES_17"], var.postgres_version)
    error_message = "postgres_version must be POSTGRES_15, POSTGRES_16 or POSTGRES_17. The code is tested with 15."
  }
}

variable "project" {
  description = "Id of the Google Cloud project; each environment has its own project."
  type        = string

  validation {
    condition     = can(regex("^[a-z][a-z0-9-]{4,28}[a-z0-9]$", var.project))
    error_message = "project must be a valid project id."
  }
}

variable "project_number" {
  description = "Number of the project. The names of Google's service agents in the project contain the number."
  type        = string

  validation {
    condition     = can(regex("^[0-9]+$", var.project_number))
    error_message = "project_number must consist of digits."
  }
}

variable "recaptcha" {
  description = "Whether the pages of page_origins may pass a challenge with reCAPTCHA Enterprise. Google bills each verified token."
  type        = bool
  default     = false
}

variable "redis_memory_gb" {
  description = "Memory of Redis in GB."
  type        = number
  default     = 1

  validation {
    condition     = var.redis_memory_gb >= 1 && var.redis_memory_gb <= 300 && floor(var.redis_memory_gb) == var.redis_memory_gb
    error_message = "redis_memory_gb must be an integer from 1 to 300."
  }
}

variable "region" {
  description = "Region of all regional resources except the gateway."
  type        = string
  default     = "asia-south1"

  validation {
    condition     = can(regex("^[a-z]+-[a-z]+[0-9]+$", var.region))
    error_message = "region must be a region such as asia-south1."
  }
}

variable "relay" {
  description = "Relay: duration of a run, number of shards drained concurrently, and size of the connection pool (one connection per worker and two more)."
  type = object({
    run         = optional(string, "57s")
    workers     = optional(number, 4)
    connections = optional(number, 6)
  })
  default = {}

  validation {
    condition     = can(regex("^[0-9]+s$", var.relay.run)) && try(tonumber(trimsuffix(var.relay.run, "s")) <= 60, false)
    error_message = "relay.run must be seconds with the unit, 60s at most: 57s."
  }

  validation {
    condition     = var.relay.workers >= 1 && var.relay.connections >= var.relay.workers + 2
    error_message = "relay.connections must be at least relay.workers + 2."
  }
}

variable "remote_config_project" {
  description = "Project of the Remote Config flags, if different from project. The functions' accounts need access to that project."
  type        = string
  default     = null
}

variable "rotation_period" {
  description = "Interval between key rotation notices: seconds with the unit, at least an hour."
  type        = string
  default     = "7776000s" # 90 days

  validation {
    condition     = can(regex("^[0-9]+s$", var.rotation_period)) && try(tonumber(trimsuffix(var.rotation_period, "s")) >= 3600, false)
    error_message = "rotation_period must be seconds with the unit, at least 3600s: 7776000s."
  }
}

variable "runtime" {
  description = "Go runtime of Cloud Run functions."
  type        = string
  default     = "go126"

  validation {
    condition     = can(regex("^go1[0-9]{2}$", var.runtime))
    error_message = "runtime must be a runtime such as go126."
  }
}

variable "secret_versions" {
  description = "Deployed secret version of each key ring, by environment variable."
  type        = map(string)
  default     = { SESSION_KEYS = "1", PEPPERS = "1", HANDOFF_KEYS = "1" }

  validation {
    condition     = toset(keys(var.secret_versions)) == toset(["SESSION_KEYS", "PEPPERS", "HANDOFF_KEYS"]) && alltrue([for v in values(var.secret_versions) : can(regex("^[0-9]+$", v))])
    error_message = "secret_versions must have a number for each of SESSION_KEYS, PEPPERS and HANDOFF_KEYS. \"latest\" is not allowed: instances would read different versions at different times."
  }
}

variable "sizes" {
  description = "Overrides of the defaults in functions.tf, by function: memory, concurrency, min_instances, max_instances."
  type = map(object({
    memory        = optional(string)
    concurrency   = optional(number)
    min_instances = optional(number)
    max_instances = optional(number)
  }))
  default = {}

  validation {
    condition     = alltrue([for name in keys(var.sizes) : contains(keys(local.functions), name)])
    error_message = "Every key of sizes must be a function of functions.tf."
  }
}

variable "sweep_run" {
  description = "Maximum duration of a sweep, finished or not: 5m; at most 9m."
  type        = string
  default     = "5m"

  validation {
    condition     = can(regex("^([1-9]m|([1-9][0-9]?|[1-4][0-9]{2}|5[0-3][0-9]|540)s)$", var.sweep_run))
    error_message = "sweep_run must be minutes or seconds with the unit, at most 9m."
  }
}

variable "telemetry" {
  description = "OTLP/HTTP endpoint for traces and metrics, and the sampling rate of traces that start in this service. null: no export."
  type = object({
    endpoint    = optional(string, "https://telemetry.googleapis.com") # /v1/traces and /v1/metrics are appended
    trace_share = optional(number, 0.05)
  })
  default = {}

  validation {
    condition     = var.telemetry == null || can(regex("^https?://[^/?#@ ]+(/[^?#@ ]*[^/?#@ ])?$", var.telemetry.endpoint))
    error_message = "telemetry.endpoint must be an http or https base URL without credentials, query or trailing slash."
  }

  validation {
    condition     = var.telemetry == null || try(var.telemetry.trace_share >= 0 && var.telemetry.trace_share <= 1, false)
    error_message = "telemetry.trace_share must be between 0 and 1."
  }
}

variable "trusted_hops" {
  description = "Number of trusted proxy entries at the end of X-Forwarded-For. null: the number computed in locals.tf."
  type        = number
  default     = null

  validation {
    condition     = var.trusted_hops == null || try(var.trusted_hops >= 1 && var.trusted_hops <= 8, false)
    error_message = "trusted_hops must be from 1 to 8."
  }
}

variable "upstreams" {
  description = "Base URLs of the upstream services."
  type        = object({ search = string, pricing = string, property = string, theme = string })

  validation {
    condition     = alltrue([for url in values(var.upstreams) : can(regex("^https://[^/]+$", url))])
    error_message = "Every upstream must be an https URL without a path."
  }
}
