# The public API Gateway. `./dev gateway` generates the document from api/consumer.openapi.yaml;
# this file fills in the address of each route's function.
resource "google_service_account" "gateway" {
  account_id   = "bffc-gateway"
  display_name = "API Gateway calls bff-consumer as this account"
}

locals {
  gateway_document = templatefile("${path.module}/gateway.openapi.yaml.tftpl", {
    address = { for name, f in local.functions : f.entry => local.deployed[name].uri if f.kind == "public" }
  })
}

resource "google_api_gateway_api" "this" {
  provider = google-beta

  api_id = local.name

  depends_on = [google_project_service.this]
}

resource "google_api_gateway_api_config" "this" {
  provider = google-beta

  api                  = google_api_gateway_api.this.api_id
  api_config_id_prefix = "${local.name}-"

  openapi_documents {
    document {
      path     = "gateway.openapi.yaml"
      contents = base64encode(local.gateway_document)
    }
  }

  gateway_config {
    backend_config {
      google_service_account = google_service_account.gateway.email
    }
  }

  # A config is immutable: the gateway switches to the new config, then the old config is deleted.
  lifecycle {
    create_before_destroy = true
  }
}

resource "google_api_gateway_gateway" "this" {
  provider = google-beta

  gateway_id = local.name
  api_config = google_api_gateway_api_config.this.id
  region     = coalesce(var.gateway_region, var.region)
}
