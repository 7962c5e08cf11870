variable "common" {
  description = "What all have in common: the platform's Go (go126), the account that builds (projects/P/serviceAccounts/EMAIL), the network that instances have addresses in, by ids, and where each packed folder lies."
  type = object({
    project  = string
    region   = string
    runtime  = string
    builder  = string
    network  = object({ network = string, subnetwork = string })
    archives = map(object({ bucket = string, object = string }))
  })
}

variable "environment" {
  description = "Environment variables that are no secrets."
  type        = map(string)
}

variable "function" {
  description = "A line of functions.tf with its size."
  type = object({
    folder        = string # below functions/
    entry         = string # the name the code registers: "SearchMap"
    kind          = string # public: behind the gateway; internal: another service calls it; event: the platform's events; job: the scheduler's ticks; operator: a person
    timeout       = number # seconds after which the platform gives a request up; the code gives up before
    memory        = string # of an instance: 512Mi
    concurrency   = number # requests that one instance answers at once
    min_instances = number # that wait even when nobody asks
    max_instances = number # each may open its whole pool of connections
  })

  validation {
    condition     = contains(["public", "internal", "event", "job", "operator"], var.function.kind)
    error_message = "A function is public, internal, event, job or operator."
  }

  validation {
    condition     = var.function.timeout >= 1 && var.function.timeout <= 3600
    error_message = "From 1 to 3600 seconds."
  }

  validation {
    condition     = can(regex("^[0-9]+(Mi|Gi)$", var.function.memory))
    error_message = "Memory is written 512Mi or 1Gi."
  }

  validation {
    condition     = var.function.concurrency >= 1 && var.function.concurrency <= 1000
    error_message = "From 1 to 1000 requests at once."
  }

  validation {
    condition     = var.function.min_instances >= 0 && var.function.min_instances <= var.function.max_instances
    error_message = "From 0 to the most instances."
  }
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

variable "name" {
  description = "The entry point in small letters with dashes: \"search-map\"."
  type        = string

  validation {
    condition     = can(regex("^[a-z][a-z0-9-]{0,24}$", var.name))
    error_message = "Small letters, digits and dashes, 25 at most: with its prefix it names an account, which has 30."
  }
}

variable "roles" {
  description = "Roles in the project."
  type        = set(string)
  default     = []
}

variable "secrets" {
  description = "Secrets by environment variable: which one, in which version."
  type        = map(object({ id = string, version = string }))
}
