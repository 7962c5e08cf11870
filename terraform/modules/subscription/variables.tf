variable "name" {
  description = "Name of the subscription. The dead-letter topic and its pull subscription are named <name>.dlq."
  type        = string
}

variable "topic" {
  description = "Topic of the subscription: projects/P/topics/T."
  type        = string

  validation {
    condition     = can(regex("^projects/[^/]+/topics/[^/]+$", var.topic))
    error_message = "topic must have the form projects/P/topics/T."
  }
}

variable "endpoint" {
  description = "URL of the function, https://….run.app. Base of the push URL, and the audience of the token."
  type        = string
}

variable "path" {
  description = "Path of the function's route."
  type        = string

  validation {
    condition     = startswith(var.path, "/internal/")
    error_message = "Messages are pushed to internal endpoints: path must begin with /internal/."
  }
}

variable "ack_deadline_seconds" {
  description = "Acknowledgement deadline: at least 30 s, because a handler may take 25 s."
  type        = number

  validation {
    condition     = var.ack_deadline_seconds >= 30 && var.ack_deadline_seconds <= 600
    error_message = "ack_deadline_seconds must be from 30 to 600 seconds."
  }
}

variable "max_delivery_attempts" {
  description = "Delivery attempts before a message becomes a dead letter. Pub/Sub allows 5 to 100."
  type        = number

  validation {
    condition     = contains([5, 10], var.max_delivery_attempts)
    error_message = "A message must be tried 5 or 10 times."
  }
}

variable "pusher" {
  description = "E-mail address of the service account that Pub/Sub pushes with. The account may invoke the function."
  type        = string
}

variable "pubsub_agent" {
  description = "Pub/Sub's service agent in this project: serviceAccount:…"
  type        = string
}
