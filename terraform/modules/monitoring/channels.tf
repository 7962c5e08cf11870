resource "google_monitoring_notification_channel" "email" {
  for_each = merge(
    { for e in var.channels.page_emails : "page ${e}" => e },
    { for e in var.channels.ticket_emails : "ticket ${e}" => e },
  )

  display_name = "bff-consumer ${each.key}"
  type         = "email"
  labels       = { email_address = each.value }
}

locals {
  # Ids of notification channels by severity.
  notification_channels = {
    page   = concat(var.channels.page, [for key, c in google_monitoring_notification_channel.email : c.name if startswith(key, "page ")])
    ticket = concat(var.channels.ticket, [for key, c in google_monitoring_notification_channel.email : c.name if startswith(key, "ticket ")])
  }
}
