// Package desk owns what happens to events and jobs in the local system: those that a person publishes or starts, those
// of the clock, and what became of each. It never knows what a function does with them.
package desk

import (
	"context"
	"mime"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/jackc/pgx/v5/pgxpool"

	"melmastoon.ghasi.io/bff-consumer/local/pubsub"
	"melmastoon.ghasi.io/bff-consumer/local/scheduler"
)

// Options say what the desk works with.
type Options struct {
	Broker    *pubsub.Broker
	Endpoints map[string]string // URL by function
	Backoff   pubsub.Backoff    // zero: broker.Local
	DB        *pgxpool.Pool     // where the outbox is
}

// Service is safe for concurrent use.
type Service struct {
	Telemetry *pubsub.TelemetryLog

	broker     *pubsub.Broker
	dispatcher *pubsub.Dispatcher
	scheduler  *scheduler.Scheduler
	outbox     *outboxReader
	tracker    *eventTracker
}

// Start begins to deliver, to listen and to tick.
func Start(o Options) (*Service, error) {
	if o.Backoff == (pubsub.Backoff{}) {
		o.Backoff = pubsub.DefaultBackoff
	}
	d := &Service{broker: o.Broker, outbox: &outboxReader{o.DB}, tracker: newEventTracker()}
	var err error
	if d.scheduler, err = scheduler.New(pubsub.Jobs(), d.publishTick); err != nil {
		return nil, err
	}
	d.Telemetry = o.Broker.CollectTelemetry()
	d.dispatcher = o.Broker.StartDispatcher(o.Endpoints, o.Backoff, d.recordDelivery)
	d.scheduler.Start(relayJob)
	return d, nil
}

// Close ends all that Open began. What functions have not answered is cut off.
func (d *Service) Close() {
	d.scheduler.Stop()
	d.dispatcher.Stop()
	d.Telemetry.Stop()
}

// publishTick puts orders on a job's topic.
func (d *Service) publishTick(ctx context.Context, job string) error {
	s, _ := pubsub.JobSubscription(job)
	_, err := d.broker.Publish(ctx, s.Topic, []byte(scheduler.TickPayload), nil)
	return err
}

// recordDelivery files what is heard of a push.
func (d *Service) recordDelivery(p pubsub.Delivery) {
	if job, ok := p.Subscription.JobName(); ok {
		d.scheduler.RecordRun(job, runResult(p.Response, p.Attempt, p.At))
		return
	}
	d.tracker.recordDelivery(p)
}

// runResult is how a job went, by the function's answer.
func runResult(a pubsub.Response, attempt int, at time.Time) scheduler.Run {
	r := scheduler.Run{Status: scheduler.OK, At: at, Attempt: attempt, Report: responseReport(a)}
	if !a.Acknowledges() {
		r.Status = scheduler.Failed
	}
	return r
}

// responseReport is what a function answered, as JSON if it is JSON; nil when that is nothing.
func responseReport(a pubsub.Response) any {
	switch media, _, _ := mime.ParseMediaType(a.ContentType); {
	case a.Err != "":
		return a.Err
	case len(a.Body) == 0:
		return nil
	case (media == "application/json" || strings.HasSuffix(media, "+json")) && jsontext.Value(a.Body).IsValid():
		return jsontext.Value(a.Body)
	default:
		return string(a.Body)
	}
}

// Jobs lists the scheduler's jobs with what is known of their runs.
func (d *Service) Jobs() []scheduler.Job { return d.scheduler.Jobs() }

// JobNames are those of all jobs.
func JobNames() []string {
	var names []string
	for _, j := range pubsub.Jobs() {
		names = append(names, j.Name)
	}
	return names
}

// HasJob reports whether there is a job of that name.
func HasJob(job string) bool { return slices.Contains(JobNames(), job) }
