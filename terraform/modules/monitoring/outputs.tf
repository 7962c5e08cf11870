output "alerts" {
  description = "Runbook in docs/runbooks of each alert."
  value       = { for name, a in local.alerts : name => a.runbook }
}

output "thresholds" {
  description = "Alert thresholds."
  value       = var.thresholds
}

output "channels" {
  description = "Number of notification channels by severity."
  value       = { for severity, ids in local.notification_channels : severity => length(ids) }
}
