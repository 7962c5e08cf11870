package relay

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os/signal"
	"syscall"
	"time"

	pubsub "cloud.google.com/go/pubsub/v2/apiv1"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/redis/go-redis/v9"

	"melmastoon.ghasi.io/bff-consumer/shared/otlp"
	"melmastoon.ghasi.io/bff-consumer/shared/outbox"
	"melmastoon.ghasi.io/bff-consumer/shared/postgres"
	"melmastoon.ghasi.io/bff-consumer/shared/problem"
	"melmastoon.ghasi.io/bff-consumer/shared/pubsubpush"
	"melmastoon.ghasi.io/bff-consumer/shared/redisclient"
	"melmastoon.ghasi.io/bff-consumer/shared/web"
)

// Relay sends what is in the outbox. It is safe for concurrent use, and several may work side by side.
type Relay struct {
	db          *pgxpool.Pool
	rdb         redis.UniversalClient
	keys        redisclient.Keys
	broker      *pubsub.TopicAdminClient
	project     string
	runDuration time.Duration
	workers     int
	now         func() time.Time // of what is written to the table; pauses go by the real clock
}

// Options are what a tick may ask for; what is not known is an order that would not be followed, and refused.
type Options struct {
	DryRun bool `json:"dryRun"` // only count
	Once   bool `json:"once"`   // end when nothing more can be sent now, and not with the minute
}

// Report is what a run did, and what it left.
type Report struct {
	Published        int64  `json:"published"`           // rows that the broker took
	Rejected         int64  `json:"refused"`             // times that a row was refused for good and backed off or was parked
	Dropped          int64  `json:"dropped"`             // rows deleted because their guest refused
	Drained          int64  `json:"spilled"`             // rows that waited in Redis and were moved into the table
	DrainRejected    int64  `json:"spillRefused"`        // rows in Redis that never can be; kept aside
	Attempts         int64  `json:"attempts"`            // rows sent, those included that the broker did not take
	Requests         int64  `json:"requests"`            // to the broker
	Outages          int64  `json:"outages"`             // requests to which it had no answer that counts
	LastOutage       string `json:"lastOutage,omitzero"` // topic and code of the last of them: "<topic>: PermissionDenied"
	Failures         int64  `json:"failures"`            // times that a lane or the look for one failed, in Postgres
	Depth            int64  `json:"depth"`               // rows left that wait
	OldestAgeSeconds int64  `json:"oldestAgeSeconds"`
	Parked           int64  `json:"parked"` // rows given up, until somebody looks
	DryRun           bool   `json:"dryRun,omitzero"`
}

// lateThreshold is when somebody has to be told that events do not get out.
const lateThreshold = 5 * time.Minute

// Serve answers a tick: it drains the outbox until the minute is over. A run whose report cannot be made failed, and
// the broker may tick again; what was sent was marked by then.
func (r *Relay) Serve(w http.ResponseWriter, req *http.Request) error {
	m, err := pubsubpush.Decode(req)
	var o Options
	if err == nil {
		err = m.DecodeOptions(&o)
	}
	if err != nil {
		return problem.New(problem.MalformedRequest, "This is no order for a run.", err)
	}
	// An instance that is to stop ends its run, so that what was sent is marked before it is gone.
	ctx, stop := signal.NotifyContext(req.Context(), syscall.SIGTERM)
	defer stop()
	report, err := r.Run(ctx, o)
	report.addToLog(ctx)
	if err != nil {
		return postgres.Problem(err)
	}
	report.recordMetrics(ctx, r.now())
	return web.WriteJSON(w, http.StatusOK, report)
}

// Run drains until the run is over or ctx ends; what was begun by then is finished.
func (r *Relay) Run(ctx context.Context, o Options) (Report, error) {
	s := newRun(r, o)
	if !o.DryRun {
		until, cancel := context.WithTimeout(ctx, r.runDuration)
		s.drainShards(until)
		cancel()
	}
	return s.report(ctx)
}

// report adds what is left to what was done.
func (s *run) report(ctx context.Context) (Report, error) {
	report := s.counters.snapshot()
	report.DryRun = s.options.DryRun
	report.LastOutage = s.counters.lastOutage()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), countTimeout)
	defer cancel()
	standing, err := outbox.ReadBacklog(ctx, s.relay.db)
	if err != nil {
		return report, errors.Join(fmt.Errorf("relay: %w", err), s.lastErr())
	}
	report.Depth, report.Parked = standing.Depth, standing.Parked
	if !standing.Oldest.IsZero() {
		report.OldestAgeSeconds = max(0, int64(s.relay.now().Sub(standing.Oldest).Seconds()))
	}
	if err := s.lastErr(); err != nil && report.Published+report.Dropped == 0 {
		return report, fmt.Errorf("relay: nothing could be done: %w", err)
	}
	return report, nil
}

// addToLog puts the report on the request's log record, and one warning beside it when somebody has to look. Alerts are
// made from both: see docs/runbooks/outbox.md.
func (r Report) addToLog(ctx context.Context) {
	web.FromContext(ctx).AddLogField("relay", r)
	if r.Parked > 0 || r.OldestAgeSeconds > int64(lateThreshold.Seconds()) {
		slog.WarnContext(ctx, "outbox: undelivered events",
			"depth", r.Depth, "oldestAgeSeconds", r.OldestAgeSeconds, "parked", r.Parked)
	}
}

// recordMetrics measures how a run left the outbox, and that there was one.
func (r Report) recordMetrics(ctx context.Context, now time.Time) {
	measured := otlp.FromContext(ctx)
	measured.RecordBacklog(ctx, otlp.OutboxBacklog{
		Depth: r.Depth, Parked: r.Parked, OldestAge: time.Duration(r.OldestAgeSeconds) * time.Second,
	})
	if !r.DryRun {
		measured.RecordJobSuccess(ctx, now)
	}
}

// Close gives back what Open has opened.
func (r *Relay) Close() {
	r.db.Close()
	r.rdb.Close()
	r.broker.Close()
}
