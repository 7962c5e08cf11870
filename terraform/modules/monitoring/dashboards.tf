# Three dashboards. A dashboard is a list of charts, shown in two columns. A chart is a list of
# lines and threshold marks; an alert uses the same thresholds. Fields of a line: filter, alignment
# (align, period), reduce, by (fields that keep series separate), and of (the denominator of a
# ratio).
locals {
  line_defaults = { align = "ALIGN_RATE", reduce = "REDUCE_SUM", by = [], of = null, period = "60s" }

  service  = ["resource.label.service_name"]
  function = ["metric.label.function"]
  percentiles = { for name, p in { p50 = "50", p95 = "95", p99 = "99" } :
  name => { align = "ALIGN_DELTA", reduce = "REDUCE_PERCENTILE_${p}" } }

  dashboards = {
    guests = {
      title = "guest journey"
      charts = concat(
        [
          { title = "Requests per second", unit = "1/s", lines = [{ filter = local.requests, by = local.service }] },
          {
            title = "Share of 5xx and 4xx responses", unit = "1"
            lines = [for class in ["5xx", "4xx"] : {
              filter = "${local.requests} AND metric.label.response_code_class=\"${class}\"", of = local.requests, legend = class
            }]
            marks = [var.thresholds.client_errors_share]
          },
        ],
        [for function, marks in { search = [600, 1100], detail = [500], handoff = [250] } : {
          title                          = "${title(function)}: latency", unit = "ms", marks = marks
          lines = [for name, p in local.percentiles :
          merge(p, { filter = "${local.latency}=\"${var.functions[function].service}\"", legend = name })]
        }],
        [
          {
            title = "Searches answered from the cache", unit = "1"
            lines = [{ filter = local.hits.filter, of = local.searches, period = "300s" }]
            marks = [var.thresholds.cache_hits_target, var.thresholds.cache_hits_failing]
          },
          { title = "Responses by cache state", unit = "1/s", lines = [{ filter = local.metric.cache_answers, by = ["metric.label.state"] }] },
          {
            title = "Handoffs", unit = "1/min"
            lines = [for name in ["minted", "consumed", "replayed", "forged"] : { filter = local.metric[name], align = "ALIGN_DELTA", legend = name }]
          },
          { title = "Responses that lack a part", unit = "1/s", lines = [{ filter = local.metric.degraded, by = local.function }] },
          {
            title = "Responses with an open circuit breaker", unit = "1/s"
            lines = [{ filter = local.metric.breaker_open, by = local.function }]
          },
          {
            title = "Share classified as bots, and share over a rate limit", unit = "1", marks = [var.thresholds.bots_share, var.thresholds.limited_share]
            lines = [for name in ["suspected", "limited"] : { filter = local.metric[name], of = local.requests, period = "300s", legend = name }]
          },
          { title = "Rate-limited requests by limit", unit = "1/s", lines = [{ filter = local.metric.limited, by = ["metric.label.policy"] }] },
          {
            title = "Instances", unit = "1"
            lines = [{ filter = "metric.type=\"run.googleapis.com/container/instance_count\" AND ${local.guests}", align = "ALIGN_MAX", by = local.service }]
          },
          { title = "Panics", unit = "1", lines = [{ filter = local.metric.panics, align = "ALIGN_DELTA", by = local.function }] },
        ],
      )
    }

    events = {
      title = "events and jobs"
      charts = [
        {
          title = "Age of the oldest waiting event", unit = "s", marks = [var.thresholds.outbox_slow_seconds, var.thresholds.outbox_late_seconds]
          lines = [{ filter = local.metric.outbox_age, align = "ALIGN_DELTA", reduce = "REDUCE_PERCENTILE_99" }]
        },
        {
          title = "Waiting events", unit = "1", marks = [var.thresholds.outbox_depth]
          lines = [{ filter = local.metric.outbox_depth, align = "ALIGN_DELTA", reduce = "REDUCE_PERCENTILE_99" }]
        },
        # The mean per run; one run takes one minute.
        {
          title = "Events published per minute", unit = "1"
          lines = [{ filter = local.metric.outbox_published, align = "ALIGN_DELTA", reduce = "REDUCE_MEAN" }]
        },
        {
          title = "Per minute: rows rejected by Pub/Sub, outages, parked rows", unit = "1"
          lines = [for name in ["outbox_refused", "outbox_outages", "outbox_parked_at"] : {
            filter = local.metric[name], align = "ALIGN_DELTA", reduce = "REDUCE_MEAN", legend = name
          }]
        },
        {
          title = "Events buffered in Redis, and events lost", unit = "1"
          lines = [for name in ["spill_waits", "telemetry_lost"] : { filter = local.metric[name], align = "ALIGN_DELTA", legend = name }]
        },
        {
          title = "Platform events by outcome", unit = "1"
          lines = [{ filter = local.metric.events_received, align = "ALIGN_DELTA", by = ["metric.label.outcome"] }]
        },
        {
          title = "Age of the oldest waiting platform event", unit = "s", marks = [var.thresholds.event_wait_seconds]
          lines = [{ filter = "${local.oldest}=${local.one_of.subscription}", align = "ALIGN_MAX", reduce = "REDUCE_MAX", by = ["resource.label.subscription_id"] }]
        },
        {
          title = "Dead letters", unit = "1"
          lines = [for kind in ["event", "job"] : {
            filter = "${local.undelivered}=${local.one_of[kind]}", align = "ALIGN_MAX", by = ["resource.label.subscription_id"]
          }]
        },
        { title = "Alarms by name", unit = "1", lines = [{ filter = local.metric.alarms, align = "ALIGN_DELTA", by = ["metric.label.alarm"] }] },
        {
          title = "Successful job runs per hour", unit = "1"
          lines = [{ filter = local.metric.job_successes, align = "ALIGN_DELTA", period = "3600s", by = local.function }]
        },
        {
          title = "Failed job runs per hour", unit = "1"
          lines = [{ filter = local.metric.job_failures, align = "ALIGN_DELTA", period = "3600s", by = local.function }]
        },
        {
          title = "Rows deleted per sweep run", unit = "1"
          lines = [{ filter = local.metric.swept, align = "ALIGN_DELTA", reduce = "REDUCE_MEAN", period = "3600s", by = local.function }]
        },
      ]
    }

    stores = {
      title = "Redis and Postgres"
      charts = concat(
        [for title, m in {
          "Redis: memory in use"          = { type = "stats/memory/usage_ratio", align = "ALIGN_MEAN", unit = "1", marks = [var.thresholds.redis_memory] }
          "Redis: evicted keys"           = { type = "stats/evicted_keys", align = "ALIGN_DELTA", unit = "1", marks = [] }
          "Redis: connections"            = { type = "clients/connected", align = "ALIGN_MAX", unit = "1", marks = [] }
          "Redis: commands per second"    = { type = "commands/calls", align = "ALIGN_RATE", unit = "1/s", marks = [] }
          "Redis: CPU seconds per second" = { type = "stats/cpu_utilization", align = "ALIGN_RATE", unit = "s/s", marks = [] }
          } : {
          title = title, unit = m.unit, marks = m.marks
          lines = [{
            filter = "metric.type=\"redis.googleapis.com/${m.type}\" AND ${local.redis}", align = m.align
            reduce = endswith(m.unit, "/s") ? "REDUCE_SUM" : "REDUCE_MAX"
          }]
        }],
        [{ title = "Requests without a session from Redis", unit = "1", lines = [{ filter = local.metric.sessions_lost, align = "ALIGN_DELTA" }] }],
        [for title, m in {
          "Postgres: connections"   = { type = "postgresql/num_backends", unit = "1", reduce = "REDUCE_SUM", marks = [local.connections] }
          "Postgres: disk in use"   = { type = "disk/utilization", unit = "1", reduce = "REDUCE_MAX", marks = [var.thresholds.postgres_disk] }
          "Postgres: CPU in use"    = { type = "cpu/utilization", unit = "1", reduce = "REDUCE_MAX", marks = [var.thresholds.postgres_cpu] }
          "Postgres: memory in use" = { type = "memory/utilization", unit = "1", reduce = "REDUCE_MAX", marks = [] }
          } : {
          title = title, unit = m.unit, marks = m.marks
          lines = [{ filter = "metric.type=\"cloudsql.googleapis.com/database/${m.type}\" AND ${local.postgres}", align = "ALIGN_MAX", reduce = m.reduce }]
        }],
      )
    }
  }

  # A line is a single filter or the ratio of two filters with the same aggregation.
  chart_queries = { for name, d in local.dashboards : name => [for chart in d.charts : [for line in [for l in chart.lines : merge(local.line_defaults, l)] : merge(
    { for part, filter in { timeSeriesFilter = line.filter } : part => { filter = filter, aggregation = {
      alignmentPeriod = line.period, perSeriesAligner = line.align, crossSeriesReducer = line.reduce, groupByFields = line.by
    } } if line.of == null },
    { for part in ["timeSeriesFilterRatio"] : part => { for side, filter in { numerator = line.filter, denominator = line.of } :
      side => { filter = filter, aggregation = {
        alignmentPeriod = line.period, perSeriesAligner = line.align, crossSeriesReducer = line.reduce, groupByFields = line.by
    } } } if line.of != null },
  )]] }
}

resource "google_monitoring_dashboard" "this" {
  for_each = local.dashboards

  dashboard_json = jsonencode({
    displayName = "bff-consumer ${var.environment}: ${each.value.title}"
    mosaicLayout = {
      columns = 12
      tiles = [for i, chart in each.value.charts : {
        width = 6, height = 4, xPos = i % 2 * 6, yPos = floor(i / 2) * 4
        widget = {
          title = chart.title
          xyChart = {
            yAxis = { label = chart.unit, scale = "LINEAR" }
            dataSets = [for j, query in local.chart_queries[each.key][i] : {
              plotType        = "LINE"
              targetAxis      = "Y1"
              legendTemplate  = try(chart.lines[j].legend, "")
              timeSeriesQuery = query
            }]
            thresholds = [for mark in try(chart.marks, []) : { value = mark, targetAxis = "Y1" }]
          }
        }
      }]
    }
  })
}
