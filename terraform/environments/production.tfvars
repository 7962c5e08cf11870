# Sizes for the steady state of docs/spec/limits.md#capacity-assumptions, with headroom for a
# campaign. project, project_number, packs_dir and TF_VAR_edge_secrets are set outside this file.
environment = "production"
region      = "asia-south1"
# API Gateway does not exist in asia-south1: docs/decisions/0034-api-gateway-region.md.
gateway_region = "europe-west1"

page_origins     = ["https://www.melmastoon.ghasi.io"]
edge             = { domain = "api.melmastoon.ghasi.io" }
consume_audience = "bff-consumer"
consume_callers  = ["bff-tenant-booking@melmastoon-production.iam.gserviceaccount.com"]

upstreams = {
  search   = "https://search-aggregation.melmastoon.ghasi.io"
  pricing  = "https://pricing.melmastoon.ghasi.io"
  property = "https://property.melmastoon.ghasi.io"
  theme    = "https://theme.melmastoon.ghasi.io"
}

recaptcha          = true
telemetry          = { trace_share = 0.05 }
redis_memory_gb    = 4
next_rotation_time = "2027-04-01T06:00:00Z"

# Three instances are always running (docs/spec/limits.md#capacity-assumptions); others start on
# demand.
sizes = {
  search              = { min_instances = 1, max_instances = 10 }
  search-map          = { max_instances = 4 }
  detail              = { min_instances = 1, max_instances = 10 }
  availability        = { max_instances = 4 }
  handoff             = { min_instances = 1, max_instances = 4 }
  telemetry-page-view = { max_instances = 5 }
}

# Placeholders: replace them. Terraform refuses to plan with example.com addresses.
deployers = ["group:bff-consumer-deployers@example.com"]
operators = ["group:bff-consumer-oncall@example.com"]
alert_channels = {
  page_emails   = ["bff-consumer-oncall@example.com"]
  ticket_emails = ["bff-consumer@example.com"]
}
runbooks_url = "https://git.example.com/bff-consumer/docs/runbooks"
