package pubsub

import (
	"cmp"
	"context"
	"log/slog"
	"maps"
	"strconv"
	"sync"
	"time"

	pb "cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
)

// Backoff is the wait of a message after a failed push: Min after the first attempt, twice as long
// after each further attempt, at most Max.
type Backoff struct{ Min, Max time.Duration }

// DefaultBackoff is short, because a developer watches the retries. The platform uses 10 s to 600
// s.
var DefaultBackoff = Backoff{100 * time.Millisecond, 10 * time.Second}

// delay returns the wait after a number of attempts, from 1.
func (b Backoff) delay(attempts int) time.Duration {
	wait := b.Min
	for range attempts - 1 {
		if wait *= 2; wait >= b.Max {
			break
		}
	}
	return min(wait, b.Max)
}

// DeliveryState is the state of a message on a push subscription.
type DeliveryState string

const (
	Waiting   DeliveryState = "waiting"   // for the first push, for a response or for the next attempt
	Delivered DeliveryState = "delivered" // the function acknowledged the message
	// the last attempt failed; a copy is on the dead-letter topic
	DeadLettered DeliveryState = "dead-lettered"
)

// Delivery is one push with its result.
type Delivery struct {
	Subscription Subscription
	Message      *pb.PubsubMessage // read-only
	Attempt      int               // from 1
	At           time.Time         // of the response
	Response     Response
	State        DeliveryState // after the push
}

// Dispatcher pushes messages to functions as Pub/Sub does: with an acknowledgement deadline,
// attempts, backoff and dead letters. The emulators cannot replace it: they store push
// subscriptions and never push, and pstest delivers its own dead letters again and again. A
// Dispatcher is safe for concurrent use.
type Dispatcher struct {
	broker     *Broker
	pusher     *pusher
	backoff    Backoff
	onDelivery func(Delivery)
	cancel     context.CancelFunc
	wg         sync.WaitGroup

	mu     sync.Mutex
	ackIDs map[string]string // acknowledgement id by message id, for messages in flight
}

const (
	maxConcurrentPushes = 16   // per subscription
	maxInFlight         = 1000 // messages per subscription that are being pushed or wait for the next attempt
)

// StartDispatcher starts to deliver the messages of every push subscription whose function has a
// URL in endpoints, in the background, until Stop. A zero backoff means DefaultBackoff. onDelivery
// receives the result of each push, from many goroutines, and must not block. StartDispatcher
// returns at once. If the broker does not answer, the dispatcher logs a warning and retries every
// second.
func (b *Broker) StartDispatcher(endpoints map[string]string, backoff Backoff, onDelivery func(Delivery)) *Dispatcher {
	if backoff == (Backoff{}) {
		backoff = DefaultBackoff
	}
	ctx, stop := context.WithCancel(context.Background())
	d := &Dispatcher{broker: b, pusher: newPusher(endpoints), backoff: backoff, onDelivery: onDelivery, cancel: stop, ackIDs: map[string]string{}}
	if b.pstest != nil {
		b.pstest.mu.Lock()
		b.pstest.isTracked = d.isInFlight
		b.pstest.mu.Unlock()
	}
	for _, s := range PushSubscriptions() {
		if endpoints[s.Function] != "" {
			d.wg.Go(func() { d.run(ctx, s) })
		}
	}
	return d
}

// Stop cancels the pushes under way and waits for their goroutines. It returns unacknowledged
// messages to the broker, with at most 1 s for each call.
func (d *Dispatcher) Stop() {
	d.cancel()
	d.wg.Wait()
	d.pusher.client.CloseIdleConnections()
}

// Push pushes a message once to the function of a subscription, past the broker, and waits for the
// response: at most s.AckDeadline. Response.Err holds the reason if no response arrives.
func (d *Dispatcher) Push(ctx context.Context, s Subscription, m *pb.PubsubMessage) Response {
	return d.pusher.push(ctx, s, d.broker.subscription(s.Name), m, 1)
}

// HasEndpoint reports whether the function of a subscription has a URL.
func (d *Dispatcher) HasEndpoint(s Subscription) bool { return d.pusher.endpoints[s.Function] != "" }

func (d *Dispatcher) isInFlight(messageID string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	_, inFlight := d.ackIDs[messageID]
	return inFlight
}

// track stores the acknowledgement id of a message in flight. It reports false for a message that
// is in flight already: the lease of the message ended and the broker delivered it again.
func (d *Dispatcher) track(m *pb.ReceivedMessage) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	_, redelivered := d.ackIDs[m.Message.MessageId]
	d.ackIDs[m.Message.MessageId] = m.AckId
	return !redelivered
}

func (d *Dispatcher) ackID(messageID string) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.ackIDs[messageID]
}

func (d *Dispatcher) untrack(messageID string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.ackIDs, messageID)
}

// run delivers the messages of one subscription until ctx ends.
func (d *Dispatcher) run(ctx context.Context, s Subscription) {
	var deliveries sync.WaitGroup
	defer deliveries.Wait()
	inFlight := make(chan struct{}, maxInFlight)
	pushes := make(chan struct{}, maxConcurrentPushes)
	for messages := range d.broker.messages(ctx, s) {
		for _, m := range messages {
			if !d.track(m) {
				continue
			}
			select {
			case inFlight <- struct{}{}:
			case <-ctx.Done():
				d.nack(s, m.Message)
				continue
			}
			deliveries.Go(func() {
				defer func() { <-inFlight }()
				d.deliver(ctx, s, m.Message, pushes)
			})
		}
	}
}

// deliver pushes a message until the function acknowledges it, the attempts are used up or ctx
// ends.
func (d *Dispatcher) deliver(ctx context.Context, s Subscription, m *pb.PubsubMessage, pushes chan struct{}) {
	for attempt := 1; ; attempt++ {
		wait := d.backoff.delay(attempt)
		// The lease covers the push and the wait after it. If the broker does not extend the lease,
		// it delivers the message again with a new acknowledgement id, and track stores that id.
		if err := d.broker.modifyAckDeadline(ctx, s, d.ackID(m.MessageId), s.AckDeadline+wait+leaseMargin); err != nil && ctx.Err() == nil {
			slog.Warn("pubsub: cannot extend the lease", "subscription", s.Name, "err", err.Error())
		}
		select {
		case pushes <- struct{}{}:
		case <-ctx.Done():
			d.nack(s, m)
			return
		}
		a := d.pusher.push(ctx, s, d.broker.subscription(s.Name), m, attempt)
		<-pushes
		if ctx.Err() != nil && !a.Acknowledges() {
			d.nack(s, m) // Stop cut off the push, so the failure is not the function's
			return
		}
		state := Waiting
		switch {
		case a.Acknowledges():
			state = Delivered
		case attempt >= s.MaxAttempts && d.deadLetter(ctx, s, m, attempt):
			state = DeadLettered
		}
		if state != Waiting {
			d.acknowledge(ctx, s, m)
		}
		d.onDelivery(Delivery{s, m, attempt, time.Now(), a, state})
		if state != Waiting {
			return
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			d.nack(s, m)
			return
		}
	}
}

const leaseMargin = 10 * time.Second

// deadLetter publishes a copy of a message on the dead-letter topic, with the attributes of
// Pub/Sub, and reports success. After a failure the caller pushes the message again.
func (d *Dispatcher) deadLetter(ctx context.Context, s Subscription, m *pb.PubsubMessage, attempts int) bool {
	attributes := maps.Clone(m.Attributes)
	if attributes == nil {
		attributes = map[string]string{}
	}
	attributes["CloudPubSubDeadLetterSourceDeliveryCount"] = strconv.Itoa(attempts)
	attributes["CloudPubSubDeadLetterSourceSubscription"] = s.Name
	attributes["CloudPubSubDeadLetterSourceSubscriptionProject"] = d.broker.Project
	attributes["CloudPubSubDeadLetterSourceTopicPublishTime"] = m.PublishTime.AsTime().UTC().Format(time.RFC3339Nano)
	_, err := d.broker.publish(ctx, s.DeadLetterTopic, &pb.PubsubMessage{Data: m.Data, Attributes: attributes, OrderingKey: m.OrderingKey})
	if err != nil && ctx.Err() == nil {
		slog.Warn("pubsub: cannot publish the dead letter", "subscription", s.Name, "message", m.MessageId, "err", err.Error())
	}
	return err == nil
}

const shutdownTimeout = time.Second // of an acknowledgement or its refusal, also during Stop

// acknowledge acknowledges a message, also during Stop, because the function has done its work.
func (d *Dispatcher) acknowledge(ctx context.Context, s Subscription, m *pb.PubsubMessage) {
	defer d.untrack(m.MessageId)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
	defer cancel()
	if err := d.broker.ack(ctx, s, d.ackID(m.MessageId)); err != nil {
		slog.Warn("pubsub: cannot acknowledge the message, the broker will deliver it again", "subscription", s.Name, "message", m.MessageId, "err", err.Error())
	}
}

// nack returns a message to the broker for immediate redelivery.
func (d *Dispatcher) nack(s Subscription, m *pb.PubsubMessage) {
	defer d.untrack(m.MessageId)
	ctx, cancel := context.WithTimeout(context.Background(), shutdownTimeout)
	defer cancel()
	// after an error the broker redelivers when the lease ends
	_ = d.broker.modifyAckDeadline(ctx, s, d.ackID(m.MessageId), 0)
}

// messages yields the messages that arrive on a subscription until ctx ends. After a pull error it
// logs a warning and waits one second.
func (b *Broker) messages(ctx context.Context, s Subscription) func(yield func([]*pb.ReceivedMessage) bool) {
	return func(yield func([]*pb.ReceivedMessage) bool) {
		wait := b.messageWaiter([]Subscription{s}, make(chan struct{}, 1))
		for ctx.Err() == nil {
			found, err := b.pull(ctx, s, maxInFlight, b.pstest == nil)
			switch {
			case len(found) > 0:
				if !yield(found) {
					return
				}
			case err != nil && ctx.Err() == nil:
				slog.Warn("pubsub: cannot pull", "subscription", s.Name, "err", err.Error())
				sleep(ctx, pullRetryInterval)
			case b.pstest != nil:
				wait(ctx)
			}
		}
	}
}

const (
	// after an error; in pstest also for messages whose lease ended, which send no signal
	pullRetryInterval = time.Second
	// of an external emulator, which sends no signal for new messages
	pollInterval = 200 * time.Millisecond
)

// messageWaiter returns a function that waits until a message may have arrived on one of the
// subscriptions, until signal receives a value or until ctx ends. The wait is at most
// pullRetryInterval in pstest and pollInterval in an external emulator.
func (b *Broker) messageWaiter(subscriptions []Subscription, signal chan struct{}) (wait func(context.Context)) {
	interval := pollInterval
	if b.pstest != nil {
		interval = pullRetryInterval
		for _, s := range subscriptions {
			b.pstest.notify(b.topic(s.Topic), signal)
		}
	}
	return func(ctx context.Context) {
		t := time.NewTimer(interval)
		defer t.Stop()
		select {
		case <-signal:
		case <-t.C:
		case <-ctx.Done():
		}
	}
}

// sleep waits for d or until ctx ends.
func sleep(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

// comparePublished orders messages by publish time, then by message id.
func comparePublished(a, b *pb.PubsubMessage) int {
	return cmp.Or(a.PublishTime.AsTime().Compare(b.PublishTime.AsTime()), compareMessageIDs(a.MessageId, b.MessageId))
}
