package pubsub

import (
	"slices"
	"strings"
	"time"

	"melmastoon.ghasi.io/bff-consumer/shared/event"
)

// Subscription is one subscription with the topic it reads. What is deployed has the same ones.
type Subscription struct {
	Name            string
	Topic           string
	AckDeadline     time.Duration // of a push: how long the function has for its answer
	MaxAttempts     int           // of a push, before it is a dead letter
	DeadLetterTopic string        // topic of those, with a pull subscription of the same name; "" when this is not pushed
	Function        string        // whom it is pushed to; "": somebody pulls
	Ordered         bool
}

// JobSpec is what the scheduler starts: at each time of its cadence, "{}" is published on a topic of its own.
type JobSpec struct {
	Name        string        // topic and subscription are called bff-consumer.jobs.<name>
	Schedule    string        // as cron has it, UTC
	AckDeadline time.Duration // of its subscription
	Function    string        // that does it
}

// platformSubscriptions are the events of others, by docs/spec/events.md#subscriptions.
var platformSubscriptions = []Subscription{
	pushSubscription("bff-consumer.theme.published.v1", "melmastoon.theme.published.v1", 30*time.Second, 5, "ThemePublished"),
	pushSubscription("bff-consumer.search_aggregation.listing.indexed.v1", "melmastoon.search_aggregation.listing.indexed.v1",
		30*time.Second, 5, "ListingIndexed"),
	pushSubscription("bff-consumer.tenant.suspended.v1", "melmastoon.tenant.suspended.v1", 30*time.Second, 10, "TenantSuspended"),
	pushSubscription("bff-consumer.tenant.reinstated.v1", "melmastoon.tenant.reinstated.v1", 30*time.Second, 10, "TenantReinstated"),
}

// jobs have the relay at work all the time, and the sweeps one after the other while few guests are awake.
var jobs = []JobSpec{
	{"relay", "* * * * *", 90 * time.Second, "Relay"},
	{"sweep-outbox", "17 3 * * *", sweepAckDeadline, "SweepOutbox"},
	{"sweep-inbox", "27 3 * * *", sweepAckDeadline, "SweepInbox"},
	{"sweep-parked", "32 3 * * *", sweepAckDeadline, "SweepParked"},
	{"sweep-handoffs", "37 3 * * *", sweepAckDeadline, "SweepHandoffs"},
	{"sweep-wishlist", "47 3 * * *", sweepAckDeadline, "SweepWishlist"},
	{"sweep-bot-scores", "57 3 * * *", sweepAckDeadline, "SweepBotScores"},
	{"sweep-idempotency", "7 4 * * *", sweepAckDeadline, "SweepIdempotency"},
	{"sweep-sessions", "17 4 * * *", sweepAckDeadline, "SweepSessions"},
	{"sweep-choices", "27 4 * * *", sweepAckDeadline, "SweepChoices"},
}

const sweepAckDeadline = 600 * time.Second // the longest that Pub/Sub waits for an answer

// jobSubscriptions are what the jobs are delivered by.
var jobSubscriptions = func() (all []Subscription) {
	for _, j := range jobs {
		all = append(all, pushSubscription(jobTopicPrefix+j.Name, jobTopicPrefix+j.Name, j.AckDeadline, 5, j.Function))
	}
	return all
}()

const jobTopicPrefix = "bff-consumer.jobs."

func pushSubscription(name, topic string, ackDeadline time.Duration, attempts int, function string) Subscription {
	return Subscription{Name: name, Topic: topic, AckDeadline: ackDeadline, MaxAttempts: attempts, DeadLetterTopic: name + ".dlq", Function: function}
}

// Jobs are what the scheduler starts.
func Jobs() []JobSpec { return slices.Clone(jobs) }

// JobSubscription is the subscription that delivers a job; ok is false when there is no such job.
func JobSubscription(job string) (_ Subscription, ok bool) {
	at := slices.IndexFunc(jobSubscriptions, func(s Subscription) bool { return s.Name == jobTopicPrefix+job })
	if at < 0 {
		return Subscription{}, false
	}
	return jobSubscriptions[at], true
}

// JobName is the name of the job that a subscription delivers; ok is false when it delivers none.
func (s Subscription) JobName() (name string, ok bool) {
	return strings.CutPrefix(s.Name, jobTopicPrefix)
}

// PushSubscriptions are all subscriptions that are pushed to a function.
func PushSubscriptions() []Subscription {
	return slices.Concat(platformSubscriptions, jobSubscriptions)
}

// TelemetrySubscriptions has one subscription, which is pulled, for each subject that this service publishes; the topic is called
// like the subject.
func TelemetrySubscriptions() []Subscription {
	var all []Subscription
	for _, subject := range event.Subjects() {
		all = append(all, Subscription{Name: "local." + subject, Topic: subject, AckDeadline: 30 * time.Second, Ordered: true})
	}
	return all
}

// deadLetterSubscriptions are the subscriptions that keep what could not be delivered, for a person to pull.
func deadLetterSubscriptions() []Subscription {
	var all []Subscription
	for _, s := range PushSubscriptions() {
		all = append(all, Subscription{Name: s.DeadLetterTopic, Topic: s.DeadLetterTopic, AckDeadline: 30 * time.Second})
	}
	return all
}

// allSubscriptions is the whole table.
func allSubscriptions() []Subscription {
	return slices.Concat(PushSubscriptions(), deadLetterSubscriptions(), TelemetrySubscriptions())
}
