# One private network. Redis and Postgres only have addresses in this network, and the functions
# reach them by direct VPC egress.

resource "google_compute_network" "this" {
  name                    = local.name
  auto_create_subnetworks = false

  depends_on = [google_project_service.this]
}

# An instance uses an address of this range and holds the address for some minutes after it ends.
# Google recommends four addresses per possible instance.
resource "google_compute_subnetwork" "functions" {
  name                     = "${local.name}-functions"
  network                  = google_compute_network.this.id
  region                   = var.region
  ip_cidr_range            = var.functions_cidr
  private_ip_google_access = true
}

check "addresses_fit" {
  assert {
    condition     = 4 * local.instances <= local.addresses
    error_message = "${local.instances} instances may run and need ${4 * local.instances} addresses, but functions_cidr has ${local.addresses}."
  }
}

locals {
  instances = sum([for size in local.size : size.max_instances])
  addresses = pow(2, 32 - tonumber(split("/", var.functions_cidr)[1])) - 4 # Google reserves four addresses
}

resource "google_compute_global_address" "services" {
  name          = "${local.name}-services"
  network       = google_compute_network.this.id
  purpose       = "VPC_PEERING"
  address_type  = "INTERNAL"
  prefix_length = 20
}

resource "google_service_networking_connection" "services" {
  network                 = google_compute_network.this.id
  service                 = "servicenetworking.googleapis.com"
  reserved_peering_ranges = [google_compute_global_address.services.name]
}
