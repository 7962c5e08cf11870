# The edge (optional): a global load balancer in front of the gateway, with a CDN cache, Cloud Armor
# rules and a custom domain. The gateway's public host stays reachable, so the load balancer adds a
# secret to each request and the functions reject requests without the secret.
locals {
  edges = var.edge == null ? {} : { this = var.edge }
}

resource "google_compute_region_network_endpoint_group" "gateway" {
  provider = google-beta
  for_each = local.edges

  # A group in use cannot be replaced in place, so a new group gets a new name.
  name                  = "${local.name}-gateway-${substr(md5(google_api_gateway_gateway.this.gateway_id), 0, 6)}"
  region                = coalesce(var.gateway_region, var.region)
  network_endpoint_type = "SERVERLESS"

  serverless_deployment {
    platform = "apigateway.googleapis.com"
    resource = google_api_gateway_gateway.this.gateway_id
    url_mask = ""
  }

  lifecycle {
    create_before_destroy = true
  }
}

resource "google_compute_backend_service" "gateway" {
  for_each = local.edges

  name                  = "${local.name}-gateway"
  load_balancing_scheme = "EXTERNAL_MANAGED"
  protocol              = "HTTPS"
  security_policy       = google_compute_security_policy.this[each.key].id

  # The load balancer overwrites headers of the same name sent by a client.
  custom_request_headers = [
    "X-Edge-Secret: ${var.edge_secrets[0]}",
    "X-Client-Geo-Country: {client_region}",
  ]

  backend {
    group = google_compute_region_network_endpoint_group.gateway[each.key].id
  }

  enable_cdn = true

  # Cache-Control of the origin decides. Only shared routes with locale and currency in the URL send
  # a cacheable response.
  cdn_policy {
    cache_mode = "USE_ORIGIN_HEADERS"

    cache_key_policy {
      include_host         = true
      include_protocol     = true
      include_query_string = true # includes locale and currency
    }
  }

  log_config {
    enable      = true
    sample_rate = each.value.log_sample
  }
}

resource "google_compute_security_policy" "this" {
  for_each = local.edges

  name = local.name
  type = "CLOUD_ARMOR"

  depends_on = [google_project_service.this]

  # The functions rate-limit guests by cookie, address and fingerprint. This rule stops floods that
  # would only cost money there.
  rule {
    action      = "rate_based_ban"
    priority    = 1000
    description = "Ban addresses with more requests than many guests behind one carrier"

    match {
      versioned_expr = "SRC_IPS_V1"

      config {
        src_ip_ranges = ["*"]
      }
    }

    rate_limit_options {
      conform_action   = "allow"
      exceed_action    = "deny(429)"
      enforce_on_key   = "IP"
      ban_duration_sec = 300

      rate_limit_threshold {
        count        = each.value.requests_per_minute
        interval_sec = 60
      }
    }
  }

  rule {
    action      = "allow"
    priority    = 2147483647
    description = "Allow all other requests"

    match {
      versioned_expr = "SRC_IPS_V1"

      config {
        src_ip_ranges = ["*"]
      }
    }
  }
}

resource "google_compute_url_map" "this" {
  for_each = local.edges

  name            = local.name
  default_service = google_compute_backend_service.gateway[each.key].id
}

resource "google_compute_managed_ssl_certificate" "this" {
  for_each = local.edges

  name = "${local.name}-${substr(md5(each.value.domain), 0, 6)}"

  managed {
    domains = [each.value.domain]
  }

  depends_on = [google_project_service.this]

  lifecycle {
    create_before_destroy = true
  }
}

resource "google_compute_ssl_policy" "this" {
  for_each = local.edges

  # Not RESTRICTED: phones as old as iOS 8 support TLS 1.2 but not AES-GCM. The ciphers that MODERN
  # adds for these phones have forward secrecy too.
  name            = local.name
  profile         = "MODERN"
  min_tls_version = "TLS_1_2"

  depends_on = [google_project_service.this]
}

resource "google_compute_target_https_proxy" "this" {
  for_each = local.edges

  name             = local.name
  url_map          = google_compute_url_map.this[each.key].id
  ssl_certificates = [google_compute_managed_ssl_certificate.this[each.key].id]
  ssl_policy       = google_compute_ssl_policy.this[each.key].id
}

resource "google_compute_global_address" "edge" {
  for_each = local.edges

  name = "${local.name}-edge"

  depends_on = [google_project_service.this]
}

resource "google_compute_global_forwarding_rule" "this" {
  for_each = local.edges

  name                  = local.name
  load_balancing_scheme = "EXTERNAL_MANAGED"
  ip_address            = google_compute_global_address.edge[each.key].id
  port_range            = "443"
  target                = google_compute_target_https_proxy.this[each.key].id
}
