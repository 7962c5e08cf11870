// Package scheduler owns the jobs of the local system. Like Cloud Scheduler, it publishes a tick on
// a job's topic at each minute of the job's schedule. It also runs a job on request and remembers
// the latest run of each job. It never knows the work of a job, except that the relay empties the
// outbox.
package scheduler

import (
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"melmastoon.ghasi.io/bff-consumer/local/pubsub"
)

// TickPayload is the message data of a scheduled tick.
const TickPayload = "{}"

// relayJob publishes the outbox. A scheduled run of it takes a whole minute, so Start ticks it at
// once.
const relayJob = "relay"

// Status is the result of a run.
type Status string

const (
	OK      Status = "ok"
	Failed  Status = "failed"  // Pub/Sub pushes a failed tick again, up to MaxAttempts of the subscription
	Running Status = "running" // only of the relay: events are still due after drainTimeout
)

// Job is a job with its latest start and its latest run.
type Job struct {
	Name      string
	Schedule  string    // five cron fields, in UTC
	StartedAt time.Time // of the latest start; zero before the first
	LastRun   Run       // the latest run that ended; At is zero before the first
}

// Run is one attempt at a job.
type Run struct {
	Status  Status
	At      time.Time // of the function's response
	Attempt int       // from 1; above 1 after failed attempts
	Report  any       // the function's response body, see pubsub.Response.Report
}

// Scheduler ticks and runs all jobs of pubsub.Jobs. It is safe for concurrent use after Start.
type Scheduler struct {
	ticker     *ticker
	broker     *pubsub.Broker
	dispatcher *pubsub.Dispatcher
	db         *pgxpool.Pool
}

// New returns a Scheduler that does not tick yet. db is the database of the outbox; the Scheduler
// does not close it. New does no input or output. It returns an error if a schedule of pubsub.Jobs
// is not valid.
func New(b *pubsub.Broker, db *pgxpool.Pool) (*Scheduler, error) {
	s := &Scheduler{broker: b, db: db}
	var err error
	if s.ticker, err = newTicker(pubsub.Jobs(), s.publishTick); err != nil {
		return nil, err
	}
	return s, nil
}

// Start ticks the relay at once and then every job on its schedule, until Stop. The dispatcher d
// must pass its deliveries to RecordDelivery. Call Start once, before RunJob and Stop.
func (s *Scheduler) Start(d *pubsub.Dispatcher) {
	s.dispatcher = d
	s.ticker.start(relayJob)
}

// Stop ends the ticks and waits for a tick that is being published. Runs under way continue in the
// dispatcher.
func (s *Scheduler) Stop() { s.ticker.stop() }

// publishTick publishes a tick on a job's topic.
func (s *Scheduler) publishTick(ctx context.Context, job string) error {
	sub, _ := pubsub.JobSubscription(job)
	_, err := s.broker.Publish(ctx, sub.Topic, []byte(TickPayload), nil)
	return err
}

// RecordDelivery stores the result of a pushed tick as the latest run of its job. It ignores
// deliveries of other subscriptions. It does not block on input or output. It may be called before
// Start.
func (s *Scheduler) RecordDelivery(d pubsub.Delivery) {
	if job, ok := d.Subscription.JobName(); ok {
		s.ticker.recordRun(job, newRun(d.Response, d.Attempt, d.At))
	}
}

// newRun converts a function's response into a run: OK if the response acknowledges the message.
func newRun(r pubsub.Response, attempt int, at time.Time) Run {
	run := Run{Status: OK, At: at, Attempt: attempt, Report: r.Report()}
	if !r.Acknowledges() {
		run.Status = Failed
	}
	return run
}

// Jobs returns all jobs in the order of pubsub.Jobs.
func (s *Scheduler) Jobs() []Job { return s.ticker.list() }

// JobNames returns the names of all jobs in the order of pubsub.Jobs.
func JobNames() []string {
	var names []string
	for _, j := range pubsub.Jobs() {
		names = append(names, j.Name)
	}
	return names
}

// HasJob reports whether a job of that name exists.
func HasJob(job string) bool { return slices.Contains(JobNames(), job) }
