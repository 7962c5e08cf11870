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
    public = {
      GOOGLE_CLOUD_PROJECT = var.project
      TRUSTED_HOPS         = tostring(coalesce(var.trusted_hops, var.edge == null ? 2 : 3))
      PAGE_ORIGINS         = join(",", var.page_origins)
    }

    # Package web, called directly: Cloud Run adds its peer.
    private = {
      GOOGLE_CLOUD_PROJECT = var.project
      TRUSTED_HOPS         = "1"
    }

    redis = {
      ENVIRONMENT = var.environment
      REDIS_ADDR  = "${google_redis_instance.this.host}:${google_redis_instance.this.port}"
    }

    database = {
      CLOUDSQL_INSTANCE = google_sql_database_instance.this.connection_name
      CLOUDSQL_DATABASE = google_sql_database.this.name
    }

    # What setup.Guest reads beside the two above.
    guest = {
      CLOUD_REGION          = var.region
      SEARCH_URL            = var.upstreams.search
      PRICING_URL           = var.upstreams.pricing
      PROPERTY_URL          = var.upstreams.property
      THEME_URL             = var.upstreams.theme
      UPSTREAM_AUTH         = "google"
      REMOTE_CONFIG_PROJECT = coalesce(var.remote_config_project, var.project)
      VALIDATE_EVENTS       = tostring(var.validate_events)
    }
  }

  database_roles = toset(["roles/cloudsql.client", "roles/cloudsql.instanceUser"])
  guest_roles    = setunion(local.database_roles, ["roles/cloudconfig.viewer"]) # Remote Config
  guest_secrets  = concat(["REDIS_PASSWORD", "SESSION_KEYS", "PEPPERS"], var.edge == null ? [] : ["EDGE_SECRET"])
}
