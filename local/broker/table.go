package broker

import (
	"slices"
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

// Job is what the scheduler starts: at each time of its cadence, "{}" is published on the topic of its subscription.
type Job struct {
	Name    string // topic and subscription are called bff-consumer.jobs.<name>
	Cadence string // as cron has it, UTC
}

// platform are the events of others, by EVENT_SCHEMAS §5.
var platform = []Subscription{
	pushed("bff-consumer.theme.published.v1", "melmastoon.theme.published.v1", 30*time.Second, 5, "ThemePublished"),
	pushed("bff-consumer.search_aggregation.listing.indexed.v1", "melmastoon.search_aggregation.listing.indexed.v1", 30*time.Second, 5, "ListingIndexed"),
	pushed("bff-consumer.tenant.suspended.v1", "melmastoon.tenant.suspended.v1", 30*time.Second, 10, "TenantSuspended"),
	pushed("bff-consumer.tenant.reinstated.v1", "melmastoon.tenant.reinstated.v1", 30*time.Second, 10, "TenantReinstated"),
}

// ticks are what the scheduler's jobs are delivered by.
var ticks = []Subscription{
	tick("relay", 90*time.Second, "Relay"),
	tick("sweep-outbox", 600*time.Second, "SweepOutbox"),
	tick("sweep-inbox", 600*time.Second, "SweepInbox"),
	tick("sweep-parked", 600*time.Second, "SweepParked"),
	tick("sweep-handoffs", 600*time.Second, "SweepHandoffs"),
	tick("sweep-wishlist", 600*time.Second, "SweepWishlist"),
	tick("sweep-bot-scores", 600*time.Second, "SweepBotScores"),
	tick("sweep-idempotency", 600*time.Second, "SweepIdempotency"),
	tick("sweep-sessions", 600*time.Second, "SweepSessions"),
	tick("sweep-choices", 600*time.Second, "SweepChoices"),
}

// jobs have the relay at work all the time, and the sweeps one after the other while few guests are awake.
var jobs = []Job{
	{"relay", "* * * * *"},
	{"sweep-outbox", "17 3 * * *"},
	{"sweep-inbox", "27 3 * * *"},
	{"sweep-parked", "32 3 * * *"},
	{"sweep-handoffs", "37 3 * * *"},
	{"sweep-wishlist", "47 3 * * *"},
	{"sweep-bot-scores", "57 3 * * *"},
	{"sweep-idempotency", "7 4 * * *"},
	{"sweep-sessions", "17 4 * * *"},
	{"sweep-choices", "27 4 * * *"},
}

func pushed(name, topic string, ackDeadline time.Duration, attempts int, function string) Subscription {
	return Subscription{Name: name, Topic: topic, AckDeadline: ackDeadline, Attempts: attempts, DeadLetter: name + ".dlq", Function: function}
}

func tick(job string, ackDeadline time.Duration, function string) Subscription {
	return pushed(topicOf(job), topicOf(job), ackDeadline, 5, function)
}

func topicOf(job string) string { return "bff-consumer.jobs." + job }

// Platform are the subscriptions to the events of others.
func Platform() []Subscription { return slices.Clone(platform) }

// Jobs are what the scheduler starts.
func Jobs() []Job { return slices.Clone(jobs) }

// Tick is the subscription that delivers a job; ok is false when there is no such job.
func Tick(job string) (_ Subscription, ok bool) {
	at := slices.IndexFunc(ticks, func(s Subscription) bool { return s.Name == topicOf(job) })
	if at < 0 {
		return Subscription{}, false
	}
	return ticks[at], true
}

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
