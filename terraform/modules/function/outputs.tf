output "account" {
  description = "E-mail address of the function's service account."
  value       = google_service_account.this.email
}

output "member" {
  description = "The function's service account as an IAM member."
  value       = google_service_account.this.member
}

output "service" {
  description = "Name of the underlying Cloud Run service, as in metrics."
  value       = google_cloudfunctions2_function.this.name
}

output "uri" {
  description = "URL of the function, https://….run.app. Also the audience of ID tokens for the function."
  value       = google_cloudfunctions2_function.this.service_config[0].uri
}
