# Validation of variables. A run sets one invalid value per variable.
mock_provider "google" {
  source          = "./tests/mocks/google"
  override_during = plan
}

mock_provider "google-beta" {
  source          = "./tests/mocks/google-beta"
  override_during = plan
}

run "valid_environment" {
  command = plan

  assert {
    condition     = length(local.deployed) == length(local.functions)
    error_message = "Functions without deployment: ${join(", ", setsubtract(keys(local.functions), keys(local.deployed)))}."
  }

  assert {
    condition     = alltrue([for op in flatten([for path in values(yamldecode(local.gateway_document).paths) : values(path)]) : startswith(op["x-google-backend"].address, "https://")])
    error_message = "Every gateway route must have an https address."
  }
}

run "without_telemetry_and_recaptcha" {
  command = plan

  variables {
    telemetry = null
    recaptcha = false
  }

  assert {
    condition     = alltrue([for name in keys(local.environment.public) : !startswith(name, "OTEL_")]) && local.base_roles == toset(["roles/cloudsql.client", "roles/cloudsql.instanceUser"])
    error_message = "Without telemetry no function may have OTLP variables or roles."
  }

  assert {
    condition     = alltrue([for name in keys(local.environment.guest) : !startswith(name, "RECAPTCHA_")]) && !contains(local.guest_roles, "roles/recaptchaenterprise.agent")
    error_message = "Without reCAPTCHA no function may have its variables or role."
  }
}

run "invalid_strings" {
  command = plan

  variables {
    project            = "No"
    project_number     = "one"
    environment        = "test"
    region             = "asia"
    page_origins       = ["http://www.melmastoon.ghasi.io"]
    consume_audience   = ""
    consume_callers    = ["serviceAccount:a@b.iam.gserviceaccount.com"]
    deployers          = ["allUsers"]
    operators          = ["serviceAccount:a@b.iam.gserviceaccount.com"]
    next_rotation_time = "in April"
    handoff_link       = "https://book.example.com"
    runtime            = "nodejs22"
    postgres_version   = "MYSQL_8_0"
    postgres_tier      = "large"
    functions_cidr     = "10.0.0.0/28"
    upstreams = {
      search = "search", pricing = "https://p", property = "https://p", theme = "https://t/"
    }
  }

  expect_failures = [
    var.project, var.project_number, var.environment, var.region, var.page_origins, var.consume_audience,
    var.consume_callers, var.deployers, var.operators, var.next_rotation_time, var.handoff_link, var.runtime, var.postgres_version,
    var.postgres_tier, var.functions_cidr, var.upstreams,
  ]
}

run "invalid_numbers_and_times" {
  command = plan

  variables {
    cadence               = { relay = "* * * *" }
    rotation_period       = "90"
    sweep_run             = "5"
    relay                 = { run = "57" }
    secret_versions       = { SESSION_KEYS = "latest", PEPPERS = "1", HANDOFF_KEYS = "1" }
    redis_memory_gb       = 0.5
    postgres_availability = "GLOBAL"
    trusted_hops          = 9
    edge                  = { domain = "api" }
    gateway_region        = "asia-south1"
    telemetry             = { endpoint = "telemetry.googleapis.com:443", trace_share = 0.5 }
  }

  expect_failures = [
    var.cadence, var.rotation_period, var.sweep_run, var.relay, var.secret_versions, var.redis_memory_gb,
    var.postgres_availability, var.trusted_hops, var.edge, var.gateway_region, var.telemetry,
  ]
}

run "invalid_relay_pool_and_edge" {
  command = plan

  variables {
    relay        = { workers = 5 }
    cadence      = { sleep = "* * * * *" }
    sweep_run    = "10m"
    edge         = { domain = "api.melmastoon.ghasi.io" }
    edge_secrets = []
    telemetry    = { trace_share = 1.5 }
  }

  expect_failures = [var.relay, var.cadence, var.sweep_run, var.edge_secrets, var.telemetry]
}

run "short_secret_and_unknown_function" {
  command = plan

  variables {
    edge_secrets = ["short"]
    sizes        = { find = { max_instances = 3 } }
  }

  expect_failures = [var.edge_secrets, var.sizes]
}

run "too_many_instances_for_postgres" {
  command = plan

  variables {
    sizes          = { search = { max_instances = 90 } }
    functions_cidr = "10.20.0.0/22"
  }

  expect_failures = [check.connections_fit]
}

run "too_many_instances_for_subnet" {
  command = plan

  variables {
    functions_cidr = "10.20.0.0/26"
  }

  expect_failures = [check.addresses_fit]
}

run "placeholder_values" {
  command = plan

  variables {
    deployers      = ["group:deployers@example.com"]
    operators      = ["user:one@example.org", "user:two@ghasi.io"]
    alert_channels = { page_emails = ["oncall@ghasi.io"], ticket_emails = ["team@mail.example.net"] }
    runbooks_url   = "https://example.com/runbooks"
  }

  expect_failures = [var.deployers, var.operators, var.alert_channels, var.runbooks_url]
}

# Functions without the connector log in with a token over TLS, to an instance with its own
# certificate authority.
run "postgres_connection_security" {
  command = plan

  assert {
    condition = alltrue([for ip in google_sql_database_instance.this.settings[0].ip_configuration :
      ip.ssl_mode == "ENCRYPTED_ONLY" && ip.server_ca_mode == "GOOGLE_MANAGED_INTERNAL_CA" && !ip.ipv4_enabled
    ])
    error_message = "Postgres must require TLS, have no public address, and have its own certificate authority."
  }

  assert {
    condition     = !contains(local.direct_guest_roles, "roles/cloudsql.client") && contains(local.guest_roles, "roles/cloudsql.client")
    error_message = "Only functions with the connector may have roles/cloudsql.client."
  }
}
