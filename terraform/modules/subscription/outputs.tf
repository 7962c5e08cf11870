output "name" {
  description = "Name of the subscription."
  value       = google_pubsub_subscription.this.name
}

output "dead_letters" {
  description = "Name of the pull subscription with the dead letters."
  value       = google_pubsub_subscription.dead.name
}
