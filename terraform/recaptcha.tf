# reCAPTCHA key for the web pages (docs/challenge.md). Without a key the only challenge is proof of
# work.
resource "google_recaptcha_enterprise_key" "pages" {
  count = var.recaptcha ? 1 : 0

  display_name = "${local.name} pages"

  web_settings {
    integration_type  = "SCORE"
    allow_all_domains = false
    allowed_domains   = local.page_hosts
  }

  depends_on = [google_project_service.this]
}

locals {
  page_hosts = distinct([for o in var.page_origins : regex("^https://([a-z0-9.-]+)", o)[0]])

  # Environment variables read by package challenge.
  recaptcha = var.recaptcha ? {
    RECAPTCHA_PROJECT  = var.project
    RECAPTCHA_SITE_KEY = google_recaptcha_enterprise_key.pages[0].name
    RECAPTCHA_HOSTS    = join(",", local.page_hosts)
  } : {}
}
