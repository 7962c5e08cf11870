output "address" {
  description = "Base URL for web pages: the edge's domain, or the gateway's host without an edge."
  value       = var.edge == null ? "https://${google_api_gateway_gateway.this.default_hostname}" : "https://${var.edge.domain}"
}

output "edge_ip" {
  description = "IP address for the DNS record of the edge's domain. null without an edge."
  value       = one([for a in google_compute_global_address.edge : a.address])
}

output "consume_url" {
  description = "URL at which tenants' BFFs consume a handoff. Also the audience of their token in X-Serverless-Authorization."
  value       = local.deployed["consume"].uri
}

output "migrate_audience" {
  description = "Audience of the ID token for migrate_url."
  value       = local.deployed["migrate"].uri
}

output "migrate_url" {
  description = "URL that applies the newest schema."
  value       = "${local.deployed["migrate"].uri}/internal/migrate"
}

output "guest_accounts" {
  description = "Accounts that call search-aggregation, pricing, property and theme. The owners of these services grant them access."
  value       = sort([for name, f in local.functions : local.deployed[name].account if f.kind == "public"])
}

output "dead_letters" {
  description = "Pull subscriptions with dead letters."
  value       = sort(concat(values(module.event)[*].dead_letters, values(module.tick)[*].dead_letters))
}

output "services" {
  description = "Cloud Run services by function, named as in metrics."
  value       = { for name, f in local.deployed : name => f.service }
}
