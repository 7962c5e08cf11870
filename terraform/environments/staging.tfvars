# Like production, but smaller, without an edge, and with every trace sampled.
environment = "staging"
region      = "asia-south1"
# See production.tfvars.
gateway_region = "europe-west1"

page_origins     = ["https://staging.melmastoon.ghasi.io"]
consume_audience = "bff-consumer"
consume_callers  = ["bff-tenant-booking@melmastoon-staging.iam.gserviceaccount.com"]

upstreams = {
  search   = "https://search-aggregation.staging.melmastoon.ghasi.io"
  pricing  = "https://pricing.staging.melmastoon.ghasi.io"
  property = "https://property.staging.melmastoon.ghasi.io"
  theme    = "https://theme.staging.melmastoon.ghasi.io"
}

recaptcha                = true
telemetry                = { trace_share = 1 }
deletion_protection      = false
postgres_tier            = "db-custom-1-3840"
postgres_availability    = "ZONAL"
postgres_max_connections = 300
next_rotation_time       = "2027-04-01T06:00:00Z"

# See production.tfvars.
deployers      = ["group:bff-consumer-deployers@example.com"]
operators      = ["group:bff-consumer-oncall@example.com"]
alert_channels = { ticket_emails = ["bff-consumer@example.com"] }
