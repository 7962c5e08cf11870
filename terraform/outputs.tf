output "address" {
  description = "Where guests' pages call: the edge's name where there is an edge, else the gateway's host."
  value       = var.edge == null ? "https://${google_api_gateway_gateway.this.default_hostname}" : "https://${var.edge.domain}"
}

output "edge_ip" {
  description = "What the edge's name must resolve to; null without an edge."
  value       = one([for a in google_compute_global_address.edge : a.address])
}

output "consume_url" {
  description = "Where tenants' BFFs use a handoff, and the audience of their token in X-Serverless-Authorization."
  value       = local.deployed["consume"].uri
}

output "migrate_audience" {
  description = "What a service account asks its token for migrate_url for."
  value       = local.deployed["migrate"].uri
}

output "migrate_url" {
  description = "Where the newest schema is applied."
  value       = "${local.deployed["migrate"].uri}/internal/migrate"
}

output "guest_accounts" {
  description = "Accounts that call search-aggregation, pricing, property and theme: their owners let these in."
  value       = sort([for name, f in local.functions : local.deployed[name].account if f.kind == "public"])
}

output "dead_letters" {
  description = "Pull subscriptions with what could not be delivered."
  value       = sort(concat(values(module.event)[*].dead_letters, values(module.tick)[*].dead_letters))
}

output "services" {
  description = "Cloud Run services by function, as metrics name them."
  value       = { for name, f in local.deployed : name => f.service }
}
