output "account" {
  description = "Address of its service account."
  value       = google_service_account.this.email
}

output "member" {
  description = "Its service account, as grants name it."
  value       = google_service_account.this.member
}

output "service" {
  description = "Name of the Cloud Run service below it, as metrics have it."
  value       = google_cloudfunctions2_function.this.name
}

output "uri" {
  description = "https://….run.app: its address, and the audience of tokens for it."
  value       = google_cloudfunctions2_function.this.service_config[0].uri
}
