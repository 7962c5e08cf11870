variable "builder" {
  description = "The account that builds: projects/P/serviceAccounts/EMAIL."
  type        = string
}

variable "concurrency" {
  description = "Requests that one instance answers at once."
  type        = number

  validation {
    condition     = var.concurrency >= 1 && var.concurrency <= 1000
    error_message = "From 1 to 1000 requests at once."
  }
}

variable "cpu" {
  description = "Processors of an instance; more than one request at once needs a whole one."
  type        = string
  default     = "1"
}

variable "database_user" {
  description = "Whether the function logs in to Postgres, as CLOUDSQL_USER."
  type        = bool
}

variable "entry_point" {
  description = "The name the code registers: \"SearchMap\"."
  type        = string
}

variable "environment" {
  description = "Environment variables that are no secrets."
  type        = map(string)
}

variable "folder" {
  description = "Below functions/."
  type        = string
}

variable "invokers" {
  description = "Who may call it, by a name for each: accounts, never everybody. The key is known before the account is."
  type        = map(string)

  validation {
    condition     = length(var.invokers) > 0
    error_message = "Somebody must be able to call it."
  }

  validation {
    condition     = !anytrue([for member in values(var.invokers) : contains(["allUsers", "allAuthenticatedUsers"], member)])
    error_message = "No function is open to everybody: the gateway calls the public ones."
  }
}

variable "kind" {
  description = "public: behind the gateway; internal: another service calls it; event: the platform's events; job: the scheduler's ticks; operator: a person."
  type        = string

  validation {
    condition     = contains(["public", "internal", "event", "job", "operator"], var.kind)
    error_message = "A function is public, internal, event, job or operator."
  }
}

variable "max_instances" {
  description = "At most so many instances; each may open its whole pool of connections."
  type        = number
}

variable "memory" {
  description = "Of an instance: 512Mi."
  type        = string

  validation {
    condition     = can(regex("^[0-9]+(Mi|Gi)$", var.memory))
    error_message = "Memory is written 512Mi or 1Gi."
  }
}

variable "min_instances" {
  description = "Instances that wait even when nobody asks."
  type        = number

  validation {
    condition     = var.min_instances >= 0 && var.min_instances <= var.max_instances
    error_message = "From 0 to the most instances."
  }
}

variable "name" {
  description = "The entry point in small letters with dashes: \"search-map\"."
  type        = string

  validation {
    condition     = can(regex("^[a-z][a-z0-9-]{0,24}$", var.name))
    error_message = "Small letters, digits and dashes, 25 at most: with its prefix it names an account, which has 30."
  }
}

variable "network" {
  description = "Ids of the network and the subnetwork that instances have addresses in."
  type        = object({ network = string, subnetwork = string })
}

variable "project" {
  description = "Id of the project."
  type        = string
}

variable "region" {
  description = "Where it runs."
  type        = string
}

variable "roles" {
  description = "Roles in the project."
  type        = set(string)
  default     = []
}

variable "runtime" {
  description = "Of the platform: go126."
  type        = string
}

variable "secrets" {
  description = "Secrets by environment variable: which one, in which version."
  type        = map(object({ id = string, version = string }))
}

variable "source_archive" {
  description = "Where the packed folder lies."
  type        = object({ bucket = string, object = string })
}

variable "timeout_seconds" {
  description = "After which the platform gives a request up; the code gives up before."
  type        = number

  validation {
    condition     = var.timeout_seconds >= 1 && var.timeout_seconds <= 3600
    error_message = "From 1 to 3600 seconds."
  }
}
