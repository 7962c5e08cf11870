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

// database is what is needed of a pool.
type database interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	Begin(ctx context.Context) (pgx.Tx, error)
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
}

// job is one rule of retention.
type job interface {
	// sweep removes what was over at now, in steps that each are a short transaction, and returns how much that was. It
	// begins no step once enough is true: then more is. What it did stays done, also after an error.
	sweep(ctx context.Context, now time.Time, enough func() bool) (removed int64, more bool, err error)
	// count tells how much sweep would remove; with more, at least so much.
	count(ctx context.Context, now time.Time) (n int64, more bool, err error)
}

// Sweep is one entry point.
type Sweep struct {
	job         job
	maxDuration time.Duration // a step does not begin later
	now         func() time.Time
}

// options are the data of a tick; what is not known is an order that would not be followed, and refused.
type options struct {
	DryRun bool `json:"dryRun"`
}

// Report is what a run did.
type Report struct {
	DryRun  bool  `json:"dryRun"`
	Removed int64 `json:"removed"` // or, of a dry run, what would be
	More    bool  `json:"more"`    // there is more: the time was over first, and the next tick goes on
	Millis  int64 `json:"durationMs"`
}

// Serve answers the scheduler's tick, in any form that package push reads. A job that failed is never 200, so that it
// is delivered again and, in the end, seen among the dead letters.
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

func decodeOptions(r *http.Request) (o options, err error) {
	m, err := pubsubpush.Decode(r)
	if err == nil {
		err = m.DecodeOptions(&o)
	}
	if wrong, ok := errors.AsType[*pubsubpush.MalformedError](err); ok {
		return o, problem.New(problem.MalformedRequest, "This is no tick: "+wrong.Reason+".", err)
	}
	return o, err
}
