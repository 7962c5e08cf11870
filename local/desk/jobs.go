package desk

import (
	"context"
	"errors"
	"time"

	pb "cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/oklog/ulid/v2"
	"google.golang.org/protobuf/types/known/timestamppb"

	"melmastoon.ghasi.io/bff-consumer/local/broker"
	"melmastoon.ghasi.io/bff-consumer/local/scheduler"
)

// relay is the job that works its whole minute, and so is not waited for to its end.
const relay = "relay"

// How a job that somebody asked for went, beside what the scheduler knows.
const (
	Drained scheduler.Status = "drained" // everything that may be sent by now was; the relay goes on
	Going   scheduler.Status = "running" // there is more to send than could be in the time
)

// ErrNoDryRun says that a job knows no dry run.
var ErrNoDryRun = errors.New("the relay has no dry run")

// ErrNoFunction says that nothing serves a job.
var ErrNoFunction = errors.New("no function serves the job")

// Result is what came of running a job.
type Result struct {
	Status scheduler.Status
	Report any // what the function said; of the relay that goes on, a Depth
}

// Run runs a job now, past the broker, and waits for the function's answer. The relay is only waited for until the outbox
// is drained.
func (d *Desk) Run(ctx context.Context, job string, dryRun bool) (Result, error) {
	s, _ := broker.Tick(job)
	if !d.dispatcher.Reaches(s) {
		return Result{}, ErrNoFunction
	}
	if job == relay {
		if dryRun {
			return Result{}, ErrNoDryRun
		}
		return d.drain(ctx, s)
	}
	orders := scheduler.Orders
	if dryRun {
		orders = `{"dryRun":true}`
	}
	r := d.run(ctx, job, s, orders)
	return Result{r.Status, r.Report}, ctx.Err()
}

// run pushes orders to a job's function once.
func (d *Desk) run(ctx context.Context, job string, s broker.Subscription, orders string) scheduler.Run {
	now := time.Now()
	d.scheduler.Begin(job, now)
	a := d.dispatcher.Push(ctx, s, &pb.PubsubMessage{
		MessageId: "by-hand-" + ulid.Make().String(), PublishTime: timestamppb.New(now), Data: []byte(orders),
	})
	r := ran(a, 1, time.Now())
	d.scheduler.End(job, r)
	return r
}

// relayRun is one run of the relay that was asked for; result may be read when ended is closed.
type relayRun struct {
	ended  chan struct{}
	result scheduler.Run
}

// begin starts the relay, unless one that was asked for is at work. It works on when nobody waits any more.
func (d *Desk) begin(s broker.Subscription) *relayRun {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.relay != nil {
		return d.relay
	}
	r := &relayRun{ended: make(chan struct{})}
	d.relay = r
	d.ended.Go(func() {
		r.result = d.run(d.ctx, relay, s, scheduler.Orders)
		d.mu.Lock()
		d.relay = nil
		d.mu.Unlock()
		close(r.ended)
	})
	return r
}

const (
	drainWithin = 10 * time.Second
	drainEvery  = 20 * time.Millisecond
)

// drain has a relay at work and returns when everything that may be sent by now was, when the relay ended before that,
// or after some time with what is left.
func (d *Desk) drain(ctx context.Context, s broker.Subscription) (Result, error) {
	late, cancel := context.WithTimeout(ctx, drainWithin)
	defer cancel()
	r := d.begin(s)
	again := time.NewTicker(drainEvery)
	defer again.Stop()
	for {
		select { // a relay that failed is told before a queue that happens to be empty
		case <-r.ended:
			return Result{r.result.Status, r.result.Report}, nil
		default:
		}
		left, err := d.backlog.depth(ctx)
		if err != nil {
			return Result{}, err
		}
		if left.Due == 0 {
			return Result{Drained, left}, nil
		}
		select {
		case <-again.C:
		case <-r.ended:
		case <-late.Done():
			return Result{Going, left}, ctx.Err()
		}
	}
}

// Depth is what the outbox has left to send.
type Depth struct {
	Due     int `json:"due"`     // may be sent now
	Waiting int `json:"waiting"` // for the next attempt at an event of the same session that was refused
	Parked  int `json:"parked"`  // given up, until somebody replays it
}

// backlog looks into the outbox, as the relay's owner would.
type backlog struct{ db *pgxpool.Pool }

func (o *backlog) depth(ctx context.Context) (Depth, error) {
	rows, _ := o.db.Query(ctx, `
		WITH held AS (
			SELECT coalesce(headers ->> 'orderingKey', id) AS session
			FROM bff_consumer.outbox
			WHERE published_at IS NULL AND parked_at IS NULL AND attempts > 0 AND due_at > now())
		SELECT count(*) FILTER (WHERE parked_at IS NULL AND NOT held),
		       count(*) FILTER (WHERE parked_at IS NULL AND held),
		       count(*) FILTER (WHERE parked_at IS NOT NULL)
		FROM (
			SELECT parked_at, coalesce(headers ->> 'orderingKey', id) IN (SELECT session FROM held) AS held
			FROM bff_consumer.outbox
			WHERE published_at IS NULL) AS unpublished`)
	return pgx.CollectExactlyOneRow(rows, pgx.RowToStructByPos[Depth])
}
