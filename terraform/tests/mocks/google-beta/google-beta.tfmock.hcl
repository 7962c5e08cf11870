mock_resource "google_api_gateway_api_config" {
  defaults = { id = "projects/project/locations/global/apis/bff-consumer/configs/one" }
}

mock_resource "google_api_gateway_gateway" {
  defaults = { default_hostname = "bff-consumer-abc.ew.gateway.dev" }
}
