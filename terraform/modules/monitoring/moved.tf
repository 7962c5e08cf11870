# Renamed resources. The blocks keep the state of earlier deployments.
moved {
  from = google_monitoring_uptime_check_config.front_door
  to   = google_monitoring_uptime_check_config.endpoint
}

moved {
  from = google_monitoring_alert_policy.this["front-door"]
  to   = google_monitoring_alert_policy.this["endpoint-unreachable"]
}

moved {
  from = google_monitoring_alert_policy.this["does-not-open"]
  to   = google_monitoring_alert_policy.this["startup-failed"]
}

moved {
  from = google_monitoring_alert_policy.this["handoff-unminted"]
  to   = google_monitoring_alert_policy.this["handoff-unknown"]
}

moved {
  from = google_monitoring_alert_policy.this["outbox-deep"]
  to   = google_monitoring_alert_policy.this["outbox-backlog"]
}

moved {
  from = google_monitoring_alert_policy.this["events-wait"]
  to   = google_monitoring_alert_policy.this["events-delayed"]
}

moved {
  from = google_monitoring_alert_policy.this["redis-away"]
  to   = google_monitoring_alert_policy.this["redis-unavailable"]
}

moved {
  from = google_monitoring_alert_policy.this["redis-evicts"]
  to   = google_monitoring_alert_policy.this["redis-evictions"]
}

moved {
  from = google_monitoring_alert_policy.this["postgres-away"]
  to   = google_monitoring_alert_policy.this["postgres-unavailable"]
}

moved {
  from = google_monitoring_alert_policy.this["postgres-busy"]
  to   = google_monitoring_alert_policy.this["postgres-cpu"]
}
