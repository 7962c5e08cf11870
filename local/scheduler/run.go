package scheduler

import (
	"context"
	"errors"
	"time"

	pb "cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"github.com/go-json-experiment/json"
	"github.com/oklog/ulid/v2"
	"google.golang.org/protobuf/types/known/timestamppb"

	"melmastoon.ghasi.io/bff-consumer/local/pubsub"
)

// ErrNoFunction means that the dispatcher has no URL for the function of a job.
var ErrNoFunction = errors.New("no function serves the job")

// JobResult is the result of RunJob.
type JobResult struct {
	Status Status
	Report any // the function's response body, see pubsub.Response.Report
}

// jobPayload is the message data of a job that a person runs.
type jobPayload struct {
	DryRun bool `json:"dryRun,omitzero"`
	Once   bool `json:"once,omitzero"` // only for the relay: one pass instead of a whole minute
}

// RunJob pushes a job to its function, past the broker, and waits for the response: at most the
// acknowledgement deadline of the job's subscription (90 s for the relay, 600 s for the others). A
// failed push is not repeated: RunJob returns status Failed and no error. Unless dryRun is set,
// RunJob repeats the relay until no event of the outbox is due; see drainOutbox for its time limit.
// RunJob returns ErrNoFunction for a job without a function, the error of ctx, or the error of
// Postgres while it drains the outbox.
func (s *Scheduler) RunJob(ctx context.Context, job string, dryRun bool) (JobResult, error) {
	sub, _ := pubsub.JobSubscription(job)
	if !s.dispatcher.HasEndpoint(sub) {
		return JobResult{}, ErrNoFunction
	}
	if job == relayJob && !dryRun {
		return s.drainOutbox(ctx, sub)
	}
	r := s.pushJob(ctx, job, sub, jobPayload{DryRun: dryRun})
	return JobResult{r.Status, r.Report}, ctx.Err()
}

// pushJob pushes a payload to a job's function once and records the run.
func (s *Scheduler) pushJob(ctx context.Context, job string, sub pubsub.Subscription, payload jobPayload) Run {
	now := time.Now()
	data, _ := json.Marshal(payload) // two booleans cannot fail
	s.ticker.recordStart(job, now)
	response := s.dispatcher.Push(ctx, sub, &pb.PubsubMessage{
		MessageId: "by-hand-" + ulid.Make().String(), PublishTime: timestamppb.New(now), Data: data,
	})
	r := newRun(response, 1, time.Now())
	s.ticker.recordRun(job, r)
	return r
}

const (
	drainTimeout  = 10 * time.Second
	drainInterval = 20 * time.Millisecond // between two runs of the relay
)

// drainOutbox runs the relay until no event is due, until a run fails, or until drainTimeout has
// passed after a run: then the status is Running. A single run may not be enough, because a relay
// skips events that another relay is sending.
func (s *Scheduler) drainOutbox(ctx context.Context, sub pubsub.Subscription) (JobResult, error) {
	deadline := time.Now().Add(drainTimeout)
	for {
		r := s.pushJob(ctx, relayJob, sub, jobPayload{Once: true})
		if ctx.Err() != nil || r.Status != OK {
			return JobResult{r.Status, r.Report}, ctx.Err()
		}
		due, err := s.countDue(ctx)
		switch {
		case err != nil:
			return JobResult{}, err
		case due == 0:
			return JobResult{r.Status, r.Report}, nil
		case time.Now().After(deadline):
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

// countDue counts the events that the relay may send now, in one query. An event is due if it is
// neither published nor parked and no rejected event of the same session is waiting for its next
// attempt.
func (s *Scheduler) countDue(ctx context.Context) (n int, err error) {
	err = s.db.QueryRow(ctx, `
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
