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

	"melmastoon.ghasi.io/bff-consumer/local/broker"
	"melmastoon.ghasi.io/bff-consumer/local/scheduler"
)

// Options say what the desk works with.
type Options struct {
	Broker  *broker.Broker
	Doors   map[string]string // URL by function
	Backoff broker.Backoff    // zero: broker.Local
	DB      *pgxpool.Pool     // where the outbox is
}

// Desk is safe for concurrent use.
type Desk struct {
	Telemetry *broker.Telemetry

	broker     *broker.Broker
	dispatcher *broker.Dispatcher
	scheduler  *scheduler.Scheduler
	backlog    *backlog
	passages   *passages
}

// Open begins to deliver, to listen and to tick.
func Open(o Options) (*Desk, error) {
	if o.Backoff == (broker.Backoff{}) {
		o.Backoff = broker.Local
	}
	d := &Desk{broker: o.Broker, backlog: &backlog{o.DB}, passages: newPassages()}
	var err error
	if d.scheduler, err = scheduler.New(broker.Jobs(), d.tick); err != nil {
		return nil, err
	}
	d.Telemetry = o.Broker.Listen()
	d.dispatcher = o.Broker.Dispatch(o.Doors, o.Backoff, d.watch)
	d.scheduler.Start(relay)
	return d, nil
}

// Close ends all that Open began. What functions have not answered is cut off.
func (d *Desk) Close() {
	d.scheduler.Stop()
	d.dispatcher.Stop()
	d.Telemetry.Stop()
}

// tick puts orders on a job's topic.
func (d *Desk) tick(ctx context.Context, job string) error {
	s, _ := broker.Tick(job)
	_, err := d.broker.Publish(ctx, s.Topic, []byte(scheduler.Orders), nil)
	return err
}

// watch files what is heard of a push.
func (d *Desk) watch(p broker.Delivery) {
	if job, ok := p.Subscription.Job(); ok {
		d.scheduler.End(job, ran(p.Answer, p.Attempt, p.At))
		return
	}
	d.passages.pushed(p)
}

// ran is how a job went, by the function's answer.
func ran(a broker.Answer, attempt int, at time.Time) scheduler.Run {
	r := scheduler.Run{Status: scheduler.OK, At: at, Attempt: attempt, Report: said(a)}
	if !a.Acknowledges() {
		r.Status = scheduler.Failed
	}
	return r
}

// said is what a function answered, as JSON if it is JSON; nil when that is nothing.
func said(a broker.Answer) any {
	switch media, _, _ := mime.ParseMediaType(a.Type); {
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
func (d *Desk) Jobs() []scheduler.Job { return d.scheduler.Jobs() }

// Names are those of all jobs.
func Names() []string {
	var names []string
	for _, j := range broker.Jobs() {
		names = append(names, j.Name)
	}
	return names
}

// Known reports whether there is a job of that name.
func Known(job string) bool { return slices.Contains(Names(), job) }
