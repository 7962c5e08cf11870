# Variables of the tests. The test runner sets packs_dir.
project            = "melmastoon-test"
project_number     = "123456789"
environment        = "staging"
gateway_region     = "europe-west1"
page_origins       = ["https://www.melmastoon.ghasi.io"]
consume_audience   = "bff-consumer"
consume_callers    = ["bff-tenant-booking@melmastoon-test.iam.gserviceaccount.com"]
deployers          = ["group:deployers@ghasi.io"]
operators          = ["group:oncall@ghasi.io"]
alert_channels     = { page_emails = ["a@ghasi.io"], ticket_emails = ["b@ghasi.io"] }
next_rotation_time = "2027-04-01T06:00:00Z"
upstreams = {
  search   = "https://search.example.com"
  pricing  = "https://pricing.example.com"
  property = "https://property.example.com"
  theme    = "https://theme.example.com"
}
