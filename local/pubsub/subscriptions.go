package pubsub

import (
	"slices"
	"strings"
	"time"

	"melmastoon.ghasi.io/bff-consumer/shared/event"
)

// Subscription is a subscription with its topic. The deployment has the same push and job
// subscriptions; a test of local/terraform compares them.
type Subscription struct {
	Name            string
	Topic           string
	AckDeadline     time.Duration // time limit of a push, including the function's response
	MaxAttempts     int           // pushes before the message becomes a dead letter; 0 for pull subscriptions
	DeadLetterTopic string        // has a pull subscription of the same name; "" for pull subscriptions
	Function        string        // receives the pushes; "" for pull subscriptions
	Ordered         bool
}

// JobSpec is a job of the scheduler. At each time of its schedule the scheduler publishes "{}" on
// the job's own topic.
type JobSpec struct {
	Name        string        // topic and subscription are called bff-consumer.jobs.<name>
	Schedule    string        // five cron fields, in UTC
	AckDeadline time.Duration // of the job's subscription
	Function    string        // does the work
}

// platformSubscriptions read the events of other services, see docs/spec/events.md#subscriptions.
var platformSubscriptions = []Subscription{
	pushSubscription("bff-consumer.theme.published.v1", "melmastoon.theme.published.v1", 30*time.Second, 5, "ThemePublished"),
	pushSubscription("bff-consumer.search_aggregation.listing.indexed.v1", "melmastoon.search_aggregation.listing.indexed.v1",
		30*time.Second, 5, "ListingIndexed"),
	pushSubscription("bff-consumer.tenant.suspended.v1", "melmastoon.tenant.suspended.v1", 30*time.Second, 10, "TenantSuspended"),
	pushSubscription("bff-consumer.tenant.reinstated.v1", "melmastoon.tenant.reinstated.v1", 30*time.Second, 10, "TenantReinstated"),
}

// jobs run the relay every minute, and the sweeps one after the other at night, when traffic is
// low.
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

const sweepAckDeadline = 600 * time.Second // the upper limit of Pub/Sub

// jobSubscriptions deliver the ticks of jobs, with 5 attempts each.
var jobSubscriptions = func() (all []Subscription) {
	for _, j := range jobs {
		all = append(all, pushSubscription(jobTopicPrefix+j.Name, jobTopicPrefix+j.Name, j.AckDeadline, 5, j.Function))
	}
	return all
}()

const jobTopicPrefix = "bff-consumer.jobs."

// pushSubscription returns a push subscription with the dead-letter topic <name>.dlq.
func pushSubscription(name, topic string, ackDeadline time.Duration, attempts int, function string) Subscription {
	return Subscription{Name: name, Topic: topic, AckDeadline: ackDeadline, MaxAttempts: attempts, DeadLetterTopic: name + ".dlq", Function: function}
}

// Jobs returns a copy of all jobs.
func Jobs() []JobSpec { return slices.Clone(jobs) }

// JobSubscription returns the subscription that delivers a job. ok is false for an unknown job.
func JobSubscription(job string) (_ Subscription, ok bool) {
	at := slices.IndexFunc(jobSubscriptions, func(s Subscription) bool { return s.Name == jobTopicPrefix+job })
	if at < 0 {
		return Subscription{}, false
	}
	return jobSubscriptions[at], true
}

// JobName returns the name of the job that s delivers. ok is false for other subscriptions.
func (s Subscription) JobName() (name string, ok bool) {
	return strings.CutPrefix(s.Name, jobTopicPrefix)
}

// PushSubscriptions returns a copy of all push subscriptions: platform events, then jobs.
func PushSubscriptions() []Subscription {
	return slices.Concat(platformSubscriptions, jobSubscriptions)
}

// TelemetrySubscriptions returns one ordered pull subscription for each subject that this service
// publishes. The topic has the name of the subject.
func TelemetrySubscriptions() []Subscription {
	var all []Subscription
	for _, subject := range event.Subjects() {
		all = append(all, Subscription{Name: "local." + subject, Topic: subject, AckDeadline: 30 * time.Second, Ordered: true})
	}
	return all
}

// deadLetterSubscriptions returns the pull subscriptions that keep dead letters for a developer.
func deadLetterSubscriptions() []Subscription {
	var all []Subscription
	for _, s := range PushSubscriptions() {
		all = append(all, Subscription{Name: s.DeadLetterTopic, Topic: s.DeadLetterTopic, AckDeadline: 30 * time.Second})
	}
	return all
}

// allSubscriptions returns the whole table.
func allSubscriptions() []Subscription {
	return slices.Concat(PushSubscriptions(), deadLetterSubscriptions(), TelemetrySubscriptions())
}
