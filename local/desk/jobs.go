package desk

import (
	"context"
	"errors"
	"time"

	pb "cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"github.com/go-json-experiment/json"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/oklog/ulid/v2"
	"google.golang.org/protobuf/types/known/timestamppb"

	"melmastoon.ghasi.io/bff-consumer/local/broker"
	"melmastoon.ghasi.io/bff-consumer/local/scheduler"
)

// relay is the job that works its whole minute when the clock starts it.
const relay = "relay"

// Going is the status of a relay that has more to send than could be in the time.
const Going scheduler.Status = "running"

// ErrNoFunction says that nothing serves a job.
var ErrNoFunction = errors.New("no function serves the job")

// Result is what came of running a job.
type Result struct {
	Status scheduler.Status
	Report any // what the function said
}

// orders are what a job is told when somebody runs it.
type orders struct {
	DryRun bool `json:"dryRun,omitzero"`
	Once   bool `json:"once,omitzero"` // of the relay: not for its whole minute
}

// Run runs a job now, past the broker, and waits for the function's answer. The relay is run until the outbox is
// drained.
func (d *Desk) Run(ctx context.Context, job string, dryRun bool) (Result, error) {
	s, _ := broker.Tick(job)
	if !d.dispatcher.Reaches(s) {
		return Result{}, ErrNoFunction
	}
	if job == relay && !dryRun {
		return d.drain(ctx, s)
	}
	r := d.run(ctx, job, s, orders{DryRun: dryRun})
	return Result{r.Status, r.Report}, ctx.Err()
}

// run pushes orders to a job's function once.
func (d *Desk) run(ctx context.Context, job string, s broker.Subscription, o orders) scheduler.Run {
	now := time.Now()
	data, _ := json.Marshal(o) // two booleans
	d.scheduler.Begin(job, now)
	a := d.dispatcher.Push(ctx, s, &pb.PubsubMessage{
		MessageId: "by-hand-" + ulid.Make().String(), PublishTime: timestamppb.New(now), Data: data,
	})
	r := ran(a, 1, time.Now())
	d.scheduler.End(job, r)
	return r
}

const (
	drainWithin = 10 * time.Second
	drainEvery  = 20 * time.Millisecond
)

// drain runs the relay until everything that may be sent by now was, or it failed, or some time is over. One run need
// not be enough: a relay leaves alone what another one is sending.
func (d *Desk) drain(ctx context.Context, s broker.Subscription) (Result, error) {
	late := time.Now().Add(drainWithin)
	for {
		r := d.run(ctx, relay, s, orders{Once: true})
		if ctx.Err() != nil || r.Status != scheduler.OK {
			return Result{r.Status, r.Report}, ctx.Err()
		}
		left, err := d.backlog.due(ctx)
		switch {
		case err != nil:
			return Result{}, err
		case left == 0:
			return Result{r.Status, r.Report}, nil
		case time.Now().After(late):
			return Result{Going, r.Report}, nil
		}
		wait := time.NewTimer(drainEvery)
		select {
		case <-wait.C:
		case <-ctx.Done():
			wait.Stop()
			return Result{}, ctx.Err()
		}
	}
}

// backlog looks into the outbox, as the relay's owner would.
type backlog struct{ db *pgxpool.Pool }

// due counts what may be sent now: what was not, is not parked, and does not wait behind an event of its session that
// was refused.
func (b *backlog) due(ctx context.Context) (n int, err error) {
	err = b.db.QueryRow(ctx, `
		SELECT count(*)
		FROM bff_consumer.outbox AS o
		WHERE published_at IS NULL AND parked_at IS NULL
		  AND NOT EXISTS (
			SELECT
			FROM bff_consumer.outbox AS refused
			WHERE refused.published_at IS NULL AND refused.parked_at IS NULL AND refused.attempts > 0 AND refused.due_at > now()
			  AND (refused.id = o.id OR refused.headers ->> 'orderingKey' = o.headers ->> 'orderingKey'))`).Scan(&n)
	return n, err
}
