# Attributes that other resources use, in the platform's format.
mock_resource "google_service_account" {
  defaults = {
    email  = "account@project.iam.gserviceaccount.com"
    member = "serviceAccount:account@project.iam.gserviceaccount.com"
    name   = "projects/project/serviceAccounts/account@project.iam.gserviceaccount.com"
  }
}

mock_resource "google_cloudfunctions2_function" {
  defaults = {
    service_config = { uri = "https://function-abc-el.a.run.app", service = "projects/project/locations/asia-south1/services/function" }
  }
}

mock_resource "google_compute_network" {
  defaults = { id = "projects/project/global/networks/bff-consumer" }
}

mock_resource "google_pubsub_topic" {
  defaults = { id = "projects/project/topics/topic" }
}

mock_resource "google_sql_database_instance" {
  defaults = {
    connection_name    = "project:asia-south1:bff-consumer"
    private_ip_address = "10.0.0.4"
    server_ca_cert     = [{ cert = "-----BEGIN CERTIFICATE-----" }]
  }
}

mock_resource "google_redis_instance" {
  defaults = { host = "10.0.0.3", port = 6379 }
}
