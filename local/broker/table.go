package broker

import (
	"slices"
	"strings"
	"time"

	"melmastoon.ghasi.io/bff-consumer/shared/event"
)

// Subscription is one subscription with the topic it reads. What is deployed has the same ones.
type Subscription struct {
	Name        string
	Topic       string
	AckDeadline time.Duration // of a push: how long the function has for its answer
	Attempts    int           // of a push, before it is a dead letter
	DeadLetter  string        // topic of those, with a pull subscription of the same name; "" when this is not pushed
	Function    string        // whom it is pushed to; "": somebody pulls
	Ordered     bool
}

// Job is what the scheduler starts: at each time of its cadence, "{}" is published on a topic of its own.
type Job struct {
	Name        string        // topic and subscription are called bff-consumer.jobs.<name>
	Cadence     string        // as cron has it, UTC
	AckDeadline time.Duration // of its subscription
	Function    string        // that does it
}

// platform are the events of others, by docs/spec/events.md#subscriptions.
var platform = []Subscription{
	pushed("bff-consumer.theme.published.v1", "melmastoon.theme.published.v1", 30*time.Second, 5, "ThemePublished"),
	pushed("bff-consumer.search_aggregation.listing.indexed.v1", "melmastoon.search_aggregation.listing.indexed.v1",
		30*time.Second, 5, "ListingIndexed"),
	pushed("bff-consumer.tenant.suspended.v1", "melmastoon.tenant.suspended.v1", 30*time.Second, 10, "TenantSuspended"),
	pushed("bff-consumer.tenant.reinstated.v1", "melmastoon.tenant.reinstated.v1", 30*time.Second, 10, "TenantReinstated"),
}

// jobs have the relay at work all the time, and the sweeps one after the other while few guests are awake.
var jobs = []Job{
	{"relay", "* * * * *", 90 * time.Second, "Relay"},
	{"sweep-outbox", "17 3 * * *", sweepWithin, "SweepOutbox"},
	{"sweep-inbox", "27 3 * * *", sweepWithin, "SweepInbox"},
	{"sweep-parked", "32 3 * * *", sweepWithin, "SweepParked"},
	{"sweep-handoffs", "37 3 * * *", sweepWithin, "SweepHandoffs"},
	{"sweep-wishlist", "47 3 * * *", sweepWithin, "SweepWishlist"},
	{"sweep-bot-scores", "57 3 * * *", sweepWithin, "SweepBotScores"},
	{"sweep-idempotency", "7 4 * * *", sweepWithin, "SweepIdempotency"},
	{"sweep-sessions", "17 4 * * *", sweepWithin, "SweepSessions"},
	{"sweep-choices", "27 4 * * *", sweepWithin, "SweepChoices"},
}

const sweepWithin = 600 * time.Second // the longest that Pub/Sub waits for an answer

// ticks are what the jobs are delivered by.
var ticks = func() (all []Subscription) {
	for _, j := range jobs {
		all = append(all, pushed(jobTopic+j.Name, jobTopic+j.Name, j.AckDeadline, 5, j.Function))
	}
	return all
}()

const jobTopic = "bff-consumer.jobs."

func pushed(name, topic string, ackDeadline time.Duration, attempts int, function string) Subscription {
	return Subscription{Name: name, Topic: topic, AckDeadline: ackDeadline, Attempts: attempts, DeadLetter: name + ".dlq", Function: function}
}

// Jobs are what the scheduler starts.
func Jobs() []Job { return slices.Clone(jobs) }

// Tick is the subscription that delivers a job; ok is false when there is no such job.
func Tick(job string) (_ Subscription, ok bool) {
	at := slices.IndexFunc(ticks, func(s Subscription) bool { return s.Name == jobTopic+job })
	if at < 0 {
		return Subscription{}, false
	}
	return ticks[at], true
}

// Job is the name of the job that a subscription delivers; ok is false when it delivers none.
func (s Subscription) Job() (name string, ok bool) { return strings.CutPrefix(s.Name, jobTopic) }

// Pushed are all subscriptions that are pushed to a function.
func Pushed() []Subscription { return slices.Concat(platform, ticks) }

// Published has one subscription, which is pulled, for each subject that this service publishes; the topic is called
// like the subject.
func Published() []Subscription {
	var all []Subscription
	for _, subject := range event.Subjects() {
		all = append(all, Subscription{Name: "local." + subject, Topic: subject, AckDeadline: 30 * time.Second, Ordered: true})
	}
	return all
}

// deadLetters are the subscriptions that keep what could not be delivered, for a person to pull.
func deadLetters() []Subscription {
	var all []Subscription
	for _, s := range Pushed() {
		all = append(all, Subscription{Name: s.DeadLetter, Topic: s.DeadLetter, AckDeadline: 30 * time.Second})
	}
	return all
}

// every is the whole table.
func every() []Subscription { return slices.Concat(Pushed(), deadLetters(), Published()) }
