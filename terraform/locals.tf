locals {
  name = "bff-consumer"

  # Pub/Sub's own account in this project; it exists when the API is on.
  pubsub_agent = "serviceAccount:service-${var.project_number}@gcp-sa-pubsub.iam.gserviceaccount.com"

  # Environment variables in groups, as the code reads them; a test holds each function's against its source.
  environment = {
    # Package web, behind the gateway. X-Forwarded-For has, from its end: the gateway's own address, which Cloud Run adds as it
    # does its peer's; and the client's, which the front end of the gateway's host adds. Envoy in the gateway adds nothing
    # (ESPv2 does not use the remote address). So the client is the second. A load balancer in front adds two of its own
    # in place of that last one, "<client>,<load balancer>" (Cloud Load Balancing, "X-Forwarded-For header"): then it is the third.
    # What Google does inside is described nowhere; docs/deploy.md says how to see it, and var.trusted_hops corrects it.
    public = merge(local.everywhere, {
      TRUSTED_HOPS = tostring(coalesce(var.trusted_hops, var.edge == null ? 2 : 3))
      PAGE_ORIGINS = join(",", var.page_origins)
    })

    # Package web, called directly: Cloud Run adds its peer.
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

    # The same instance for programs without the connector: where it is, and whose certificate it has. After the authority was
    # rotated, which it is every ten years, apply: docs/runbooks/postgres.md.
    direct = {
      CLOUDSQL_ADDRESS = "${google_sql_database_instance.this.private_ip_address}:5432"
      CLOUDSQL_CA      = join("\n", google_sql_database_instance.this.server_ca_cert[*].cert)
    }

    # What setup.Guest reads beside redis and database.
    guest = merge(local.recaptcha, {
      SEARCH_URL            = var.upstreams.search
      PRICING_URL           = var.upstreams.pricing
      PROPERTY_URL          = var.upstreams.property
      THEME_URL             = var.upstreams.theme
      UPSTREAM_AUTH         = "google"
      REMOTE_CONFIG_PROJECT = coalesce(var.remote_config_project, var.project)
    })
  }

  # What every function knows: package telemetry says who speaks, package web which project a trace is of.
  everywhere = merge({
    GOOGLE_CLOUD_PROJECT = var.project
    ENVIRONMENT          = var.environment
    CLOUD_REGION         = var.region
    }, var.telemetry == null ? {} : {
    OTEL_EXPORTER_OTLP_ENDPOINT = var.telemetry.endpoint
    OTEL_TRACES_SAMPLER_ARG     = tostring(var.telemetry.trace_share)
  })

  # Google's own collector asks who writes, and that the account may use the project that pays: the code names it in a header.
  to_google       = can(regex("^https://([a-z0-9-]+\\.)*googleapis\\.com$", var.telemetry.endpoint))
  telemetry_roles = ["roles/telemetry.tracesWriter", "roles/telemetry.metricsWriter", "roles/serviceusage.serviceUsageConsumer"]

  # Of every account: logging in to Postgres, and the collector. The connector also asks for a certificate.
  direct_roles = setunion(["roles/cloudsql.instanceUser"], local.to_google ? local.telemetry_roles : [])
  base_roles   = setunion(local.direct_roles, ["roles/cloudsql.client"])
  # And of those that guests wait for: Remote Config, and tokens of reCAPTCHA.
  for_guests         = setunion(["roles/cloudconfig.viewer"], var.recaptcha ? ["roles/recaptchaenterprise.agent"] : [])
  guest_roles        = setunion(local.base_roles, local.for_guests)
  direct_guest_roles = setunion(local.direct_roles, local.for_guests)

  guest_secrets = concat(["REDIS_PASSWORD", "SESSION_KEYS", "PEPPERS"], var.edge == null ? [] : ["EDGE_SECRET"])
}
