output "alerts" {
  description = "Runbook in docs/runbooks by alert."
  value       = { for name, a in local.alerts : name => a.runbook }
}

output "thresholds" {
  description = "From where on somebody is told."
  value       = var.thresholds
}

output "channels" {
  description = "How many are told, by severity."
  value       = { for severity, ids in local.told : severity => length(ids) }
}
