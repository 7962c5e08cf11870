package sweep

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"melmastoon.ghasi.io/bff-consumer/shared/otlp"
	"melmastoon.ghasi.io/bff-consumer/shared/postgres"
	"melmastoon.ghasi.io/bff-consumer/shared/problem"
	"melmastoon.ghasi.io/bff-consumer/shared/pubsubpush"
	"melmastoon.ghasi.io/bff-consumer/shared/web"
)

// database is the part of a pool that sweeps use.
type database interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	Begin(ctx context.Context) (pgx.Tx, error)
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
}

// job is one rule of retention.
type job interface {
	// sweep removes the rows or sessions that were expired at now, in batches, each a short
	// transaction, and returns their number. It starts no batch after timeUp is true, and then
	// returns more. Finished batches stay committed after an error.
	sweep(ctx context.Context, now time.Time, timeUp func() bool) (removed int64, more bool, err error)
	// count returns the number that sweep would remove. With more the number is a lower bound.
	count(ctx context.Context, now time.Time) (n int64, more bool, err error)
}

// Sweep is an entry point. Safe for concurrent use.
type Sweep struct {
	job         job
	maxDuration time.Duration // no batch starts later
	now         func() time.Time
}

// options are the data of a tick. A tick with an unknown member is refused.
type options struct {
	DryRun bool `json:"dryRun"`
}

// Report is the response to a tick.
type Report struct {
	DryRun  bool  `json:"dryRun"`
	Removed int64 `json:"removed"` // rows or sessions removed; of a dry run, to be removed
	More    bool  `json:"more"`    // the time was up first: the next tick continues
	Millis  int64 `json:"durationMs"`
}

// Serve answers a tick: it runs the job for at most SWEEP_RUN (5 min by default) and its last
// batch, and returns the Report with status 200. A batch is a statement of up to 5,000 rows, or for
// SweepSessions up to 500 sessions in three round trips each to Redis and Postgres, and more when
// guests return. A run holds one connection of Postgres. A dry run only counts, in one round trip
// of up to 100,000 rows, or in 64 to Redis. A request that is no tick gets 400.
//
// A failed job never gets 200: the answer is 503 when Postgres is unavailable or Redis does not
// reply, and 500 for other errors, an open breaker of Redis included, so that Pub/Sub delivers the
// tick again and finally to the dead letters. Batches before the failure stay committed.
// SweepSessions needs both stores, other jobs Postgres only. Concurrent runs share the rows of a
// table; runs of SweepSessions repeat each other's batch with the same events, and may both count
// its sessions.
func (s *Sweep) Serve(w http.ResponseWriter, r *http.Request) error {
	o, err := decodeOptions(r)
	if err != nil {
		return err
	}
	ctx, start := r.Context(), s.now()
	report := Report{DryRun: o.DryRun}
	if o.DryRun {
		report.Removed, report.More, err = s.job.count(ctx, start)
	} else {
		end := start.Add(s.maxDuration)
		report.Removed, report.More, err = s.job.sweep(ctx, start, func() bool { return !s.now().Before(end) })
	}
	report.Millis = s.now().Sub(start).Milliseconds()
	call := web.FromContext(ctx)
	call.AddLogField("removed", report.Removed)
	call.AddLogField("more", report.More)
	call.AddLogField("dryRun", report.DryRun)
	if err != nil {
		return postgres.Problem(err)
	}
	if !o.DryRun {
		otlp.FromContext(ctx).RecordJobSuccess(ctx, s.now())
	}
	return web.WriteJSON(w, http.StatusOK, report)
}

// decodeOptions decodes the tick in r.
func decodeOptions(r *http.Request) (o options, err error) {
	m, err := pubsubpush.Decode(r)
	if err == nil {
		err = m.DecodeOptions(&o)
	}
	if malformed, ok := errors.AsType[*pubsubpush.MalformedError](err); ok {
		return o, problem.New(problem.MalformedRequest, "The request is not a tick: "+malformed.Reason+".", err)
	}
	return o, err
}
