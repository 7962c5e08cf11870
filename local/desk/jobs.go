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

	"melmastoon.ghasi.io/bff-consumer/local/pubsub"
	"melmastoon.ghasi.io/bff-consumer/local/scheduler"
)

// relayJob is the job that works its whole minute when the clock starts it.
const relayJob = "relay"

// Running is the status of a relay that has more to send than could be in the time.
const Running scheduler.Status = "running"

// ErrNoFunction says that nothing serves a job.
var ErrNoFunction = errors.New("no function serves the job")

// JobResult is what came of running a job.
type JobResult struct {
	Status scheduler.Status
	Report any // what the function said
}

// jobPayload are what a job is told when somebody runs it.
type jobPayload struct {
	DryRun bool `json:"dryRun,omitzero"`
	Once   bool `json:"once,omitzero"` // of the relay: not for its whole minute
}

// RunJob runs a job now, past the broker, and waits for the function's answer. The relay is run until the outbox is
// drained.
func (d *Service) RunJob(ctx context.Context, job string, dryRun bool) (JobResult, error) {
	s, _ := pubsub.JobSubscription(job)
	if !d.dispatcher.HasEndpoint(s) {
		return JobResult{}, ErrNoFunction
	}
	if job == relayJob && !dryRun {
		return d.drainOutbox(ctx, s)
	}
	r := d.pushJob(ctx, job, s, jobPayload{DryRun: dryRun})
	return JobResult{r.Status, r.Report}, ctx.Err()
}

// pushJob pushes orders to a job's function once.
func (d *Service) pushJob(ctx context.Context, job string, s pubsub.Subscription, o jobPayload) scheduler.Run {
	now := time.Now()
	data, _ := json.Marshal(o) // two booleans
	d.scheduler.RecordStart(job, now)
	a := d.dispatcher.Push(ctx, s, &pb.PubsubMessage{
		MessageId: "by-hand-" + ulid.Make().String(), PublishTime: timestamppb.New(now), Data: data,
	})
	r := runResult(a, 1, time.Now())
	d.scheduler.RecordRun(job, r)
	return r
}

const (
	drainTimeout  = 10 * time.Second
	drainInterval = 20 * time.Millisecond
)

// drainOutbox runs the relay until everything that may be sent by now was, or it failed, or some time is over. One run need
// not be enough: a relay leaves alone what another one is sending.
func (d *Service) drainOutbox(ctx context.Context, s pubsub.Subscription) (JobResult, error) {
	late := time.Now().Add(drainTimeout)
	for {
		r := d.pushJob(ctx, relayJob, s, jobPayload{Once: true})
		if ctx.Err() != nil || r.Status != scheduler.OK {
			return JobResult{r.Status, r.Report}, ctx.Err()
		}
		left, err := d.outbox.countDue(ctx)
		switch {
		case err != nil:
			return JobResult{}, err
		case left == 0:
			return JobResult{r.Status, r.Report}, nil
		case time.Now().After(late):
			return JobResult{Running, r.Report}, nil
		}
		wait := time.NewTimer(drainInterval)
		select {
		case <-wait.C:
		case <-ctx.Done():
			wait.Stop()
			return JobResult{}, ctx.Err()
		}
	}
}

// outboxReader looks into the outbox, as the relay's owner would.
type outboxReader struct{ db *pgxpool.Pool }

// countDue counts what may be sent now: what was not, is not parked, and does not wait behind an event of its session that
// was refused.
func (b *outboxReader) countDue(ctx context.Context) (n int, err error) {
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
