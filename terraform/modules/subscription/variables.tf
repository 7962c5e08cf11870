variable "name" {
  description = "Of the subscription; its dead letters are called <name>.dlq."
  type        = string
}

variable "topic" {
  description = "The topic that is read: projects/P/topics/T."
  type        = string

  validation {
    condition     = can(regex("^projects/[^/]+/topics/[^/]+$", var.topic))
    error_message = "A topic is written projects/P/topics/T."
  }
}

variable "endpoint" {
  description = "The function's own URL, https://….run.app: where a message is posted to, and the audience of the token."
  type        = string
}

variable "path" {
  description = "Of the function's route."
  type        = string

  validation {
    condition     = startswith(var.path, "/internal/")
    error_message = "Messages are pushed to private doors: /internal/…"
  }
}

variable "ack_deadline_seconds" {
  description = "How long the function has for its answer: at least 30 s, since a handler may take 25 s."
  type        = number

  validation {
    condition     = var.ack_deadline_seconds >= 30 && var.ack_deadline_seconds <= 600
    error_message = "An acknowledgement takes from 30 to 600 seconds."
  }
}

variable "max_delivery_attempts" {
  description = "How often a message is tried before it is a dead letter; the platform takes 5 to 100."
  type        = number

  validation {
    condition     = contains([5, 10], var.max_delivery_attempts)
    error_message = "A message is tried 5 or 10 times."
  }
}

variable "pusher" {
  description = "Address of the service account that Pub/Sub pushes as; it may invoke the function."
  type        = string
}

variable "pubsub_agent" {
  description = "Pub/Sub's own account in this project: serviceAccount:…"
  type        = string
}
