variable "common" {
  description = "Common settings of all functions: project, region, Go runtime (go126), build account (projects/P/serviceAccounts/EMAIL), ids of the network of the instances, and the archive of each folder."
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
  description = "Environment variables without secrets."
  type        = map(string)
}

variable "function" {
  description = "Entry of the table in functions.tf, merged with its size."
  type = object({
    folder        = string # below functions/
    entry         = string # the name registered in code: "SearchMap"
    kind          = string # the caller. public: the gateway; internal: another service; event: platform events; job: scheduler ticks; operator: a person
    timeout       = number # request timeout of the platform in seconds; the deadline in code is shorter
    memory        = string # memory of an instance: 512Mi
    concurrency   = number # concurrent requests of an instance
    min_instances = number # instances kept running without requests
    max_instances = number # each instance may open its whole connection pool
  })

  validation {
    condition     = contains(["public", "internal", "event", "job", "operator"], var.function.kind)
    error_message = "function.kind must be public, internal, event, job or operator."
  }

  validation {
    condition     = var.function.timeout >= 1 && var.function.timeout <= 3600
    error_message = "function.timeout must be from 1 to 3600 seconds."
  }

  validation {
    condition     = can(regex("^[0-9]+(Mi|Gi)$", var.function.memory))
    error_message = "function.memory must be a size such as 512Mi or 1Gi."
  }

  validation {
    condition     = var.function.concurrency >= 1 && var.function.concurrency <= 1000
    error_message = "function.concurrency must be from 1 to 1000."
  }

  validation {
    condition     = var.function.min_instances >= 0 && var.function.min_instances <= var.function.max_instances
    error_message = "function.min_instances must be from 0 to max_instances."
  }
}

variable "invokers" {
  description = "IAM members that may call the function, never allUsers. The keys are arbitrary names that are known at plan time."
  type        = map(string)

  validation {
    condition     = length(var.invokers) > 0
    error_message = "Name at least one invoker."
  }

  validation {
    condition     = !anytrue([for member in values(var.invokers) : contains(["allUsers", "allAuthenticatedUsers"], member)])
    error_message = "No function is open to everybody: the gateway calls the public ones."
  }
}

variable "name" {
  description = "Name of the entry point in kebab case: \"search-map\"."
  type        = string

  validation {
    condition     = can(regex("^[a-z][a-z0-9-]{0,24}$", var.name))
    error_message = "name must be at most 25 lower-case letters, digits and dashes: with its prefix it names a service account, which has at most 30 characters."
  }
}

variable "roles" {
  description = "IAM roles of the function's account in the project."
  type        = set(string)
  default     = []
}

variable "secrets" {
  description = "Id and version of each secret, by environment variable."
  type        = map(object({ id = string, version = string }))
}
