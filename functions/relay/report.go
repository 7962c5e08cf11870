package relay

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/codes"

	"melmastoon.ghasi.io/bff-consumer/shared/otlp"
	"melmastoon.ghasi.io/bff-consumer/shared/outbox"
	"melmastoon.ghasi.io/bff-consumer/shared/web"
)

const (
	// countTimeout limits the count of the backlog.
	countTimeout = 8 * time.Second
	// lateThreshold is the age of the oldest pending row at which a run logs a warning.
	lateThreshold = 5 * time.Minute
)

// Report says what a run did and what it left.
type Report struct {
	Published int64 `json:"published"` // rows accepted by Pub/Sub and marked
	// permanent refusals of single rows, each followed by backoff or parking
	Rejected int64 `json:"refused"`
	Dropped  int64 `json:"dropped"` // rows deleted because the guest refused telemetry
	Drained  int64 `json:"spilled"` // rows moved from the Redis buffer
	// rows of the Redis buffer that Postgres can never take; set aside
	DrainRejected int64 `json:"spillRefused"`
	Attempts      int64 `json:"attempts"` // rows in requests, whether accepted or not
	Requests      int64 `json:"requests"` // requests to Pub/Sub
	// requests that failed without a verdict on their rows
	Outages int64 `json:"outages"`
	// topic and gRPC code of the last outage: "<topic>: PermissionDenied"
	LastOutage       string `json:"lastOutage,omitzero"`
	Failures         int64  `json:"failures"`         // polls and batches that failed in Postgres
	Depth            int64  `json:"depth"`            // pending rows left
	OldestAgeSeconds int64  `json:"oldestAgeSeconds"` // of the pending rows left
	Parked           int64  `json:"parked"`           // rows given up until an operator replays them
	DryRun           bool   `json:"dryRun,omitzero"`
}

// counters count the work of a run. They are safe for concurrent use.
type counters struct {
	published, rejected, dropped, drained, drainRejected, attempts, requests, outages, failures atomic.Int64

	outageSummary atomic.Pointer[string] // see Report.LastOutage
}

// addOutage counts a failed request to a topic. It keeps the code and leaves out the broker's text:
// the text may repeat parts of the rows.
func (c *counters) addOutage(topic string, code codes.Code) {
	c.outages.Add(1)
	summary := topic + ": " + code.String()
	c.outageSummary.Store(&summary)
}

func (c *counters) lastOutage() string {
	if summary := c.outageSummary.Load(); summary != nil {
		return *summary
	}
	return ""
}

func (c *counters) snapshot() Report {
	return Report{
		Published: c.published.Load(), Rejected: c.rejected.Load(), Dropped: c.dropped.Load(), Drained: c.drained.Load(),
		DrainRejected: c.drainRejected.Load(), Attempts: c.attempts.Load(), Requests: c.requests.Load(), Outages: c.outages.Load(),
		Failures: c.failures.Load(), LastOutage: c.lastOutage(),
	}
}

// report returns the counters together with the backlog. It ignores the end of ctx and waits up to
// 8 s for Postgres.
func (r *run) report(ctx context.Context) (Report, error) {
	report := r.counters.snapshot()
	report.DryRun = r.options.DryRun
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), countTimeout)
	defer cancel()
	backlog, err := outbox.ReadBacklog(ctx, r.relay.db)
	if err != nil {
		return report, errors.Join(fmt.Errorf("relay: %w", err), r.lastErr())
	}
	report.Depth, report.Parked = backlog.Depth, backlog.Parked
	if !backlog.Oldest.IsZero() {
		report.OldestAgeSeconds = max(0, int64(r.relay.now().Sub(backlog.Oldest).Seconds()))
	}
	if err := r.lastErr(); err != nil && report.Published+report.Dropped == 0 {
		return report, fmt.Errorf("relay: nothing was published: %w", err)
	}
	return report, nil
}

// addToLog puts the report on the request's log record. It logs a separate warning when a row is
// parked or the oldest pending row is older than five minutes. Alerts are made from both records:
// see docs/runbooks/outbox.md.
func (r Report) addToLog(ctx context.Context) {
	web.FromContext(ctx).AddLogField("relay", r)
	if r.Parked > 0 || r.OldestAgeSeconds > int64(lateThreshold.Seconds()) {
		slog.WarnContext(ctx, "outbox: undelivered events",
			"depth", r.Depth, "oldestAgeSeconds", r.OldestAgeSeconds, "parked", r.Parked)
	}
}

// recordMetrics records the backlog, and the success of the job unless the run was a dry run.
func (r Report) recordMetrics(ctx context.Context, now time.Time) {
	metrics := otlp.FromContext(ctx)
	metrics.RecordBacklog(ctx, otlp.OutboxBacklog{
		Depth: r.Depth, Parked: r.Parked, OldestAge: time.Duration(r.OldestAgeSeconds) * time.Second,
	})
	if !r.DryRun {
		metrics.RecordJobSuccess(ctx, now)
	}
}
