locals {
  name = "bff-consumer"

  # Pub/Sub's service agent in this project. It exists once the API is enabled.
  pubsub_agent = "serviceAccount:service-${var.project_number}@gcp-sa-pubsub.iam.gserviceaccount.com"

  # Groups of environment variables. A test compares each function's variables with its source.
  environment = {
    # Package web, behind the gateway. The last entries of X-Forwarded-For, from the end, are:
    #   1. the gateway's address, added by Cloud Run (the address of its peer);
    #   2. the client's address, added by the front end of the gateway's host.
    # Envoy inside the gateway adds nothing (ESPv2 does not use the remote address), so without an
    # edge the client is the second entry. An edge adds "<client>,<load balancer>" in place of entry 2
    # (Cloud Load Balancing, "X-Forwarded-For header"), so the client is then the third entry. Google
    # does not document the internal hops: docs/deploy.md shows how to observe them, and
    # var.trusted_hops overrides the number.
    public = merge(local.everywhere, {
      TRUSTED_HOPS = tostring(coalesce(var.trusted_hops, var.edge == null ? 2 : 3))
      PAGE_ORIGINS = join(",", var.page_origins)
    })

    # Package web, called directly: Cloud Run adds the caller's address.
    private = merge(local.everywhere, {
      TRUSTED_HOPS = "1"
    })

    redis = {
      REDIS_ADDR = "${google_redis_instance.this.host}:${google_redis_instance.this.port}"
    }

    database = {
      CLOUDSQL_INSTANCE = google_sql_database_instance.this.connection_name
      CLOUDSQL_DATABASE = google_sql_database.this.name
    }

    # The same instance for functions without the Cloud SQL connector: address and certificate
    # authority. Google rotates the authority every ten years; apply afterwards
    # (docs/runbooks/postgres.md).
    direct = {
      CLOUDSQL_ADDRESS = "${google_sql_database_instance.this.private_ip_address}:5432"
      CLOUDSQL_CA      = join("\n", google_sql_database_instance.this.server_ca_cert[*].cert)
    }

    # Guest-facing functions read these variables besides redis and database (package wiring).
    guest = merge(local.recaptcha, {
      SEARCH_URL            = var.upstreams.search
      PRICING_URL           = var.upstreams.pricing
      PROPERTY_URL          = var.upstreams.property
      THEME_URL             = var.upstreams.theme
      UPSTREAM_AUTH         = "google"
      REMOTE_CONFIG_PROJECT = coalesce(var.remote_config_project, var.project)
    })
  }

  # Variables of every function. Package otlp sends them as resource attributes, package web uses
  # the project in trace names.
  everywhere = merge({
    GOOGLE_CLOUD_PROJECT = var.project
    ENVIRONMENT          = var.environment
    CLOUD_REGION         = var.region
    }, var.telemetry == null ? {} : {
    OTEL_EXPORTER_OTLP_ENDPOINT = var.telemetry.endpoint
    OTEL_TRACES_SAMPLER_ARG     = tostring(var.telemetry.trace_share)
  })

  # Google's OTLP endpoint requires an authenticated account with the right to use the quota
  # project. The code sends the project in a header.
  to_google       = can(regex("^https://([a-z0-9-]+\\.)*googleapis\\.com$", var.telemetry.endpoint))
  telemetry_roles = ["roles/telemetry.tracesWriter", "roles/telemetry.metricsWriter", "roles/serviceusage.serviceUsageConsumer"]

  # Roles of every account: Postgres login and the OTLP endpoint. Accounts that use the Cloud SQL
  # connector also need cloudsql.client to request a certificate.
  direct_roles = setunion(["roles/cloudsql.instanceUser"], local.to_google ? local.telemetry_roles : [])
  base_roles   = setunion(local.direct_roles, ["roles/cloudsql.client"])
  # Additional roles of guest-facing functions: Remote Config, and verification of reCAPTCHA tokens.
  for_guests         = setunion(["roles/cloudconfig.viewer"], var.recaptcha ? ["roles/recaptchaenterprise.agent"] : [])
  guest_roles        = setunion(local.base_roles, local.for_guests)
  direct_guest_roles = setunion(local.direct_roles, local.for_guests)

  guest_secrets = concat(["REDIS_PASSWORD", "SESSION_KEYS", "PEPPERS"], var.edge == null ? [] : ["EDGE_SECRET"])
}
