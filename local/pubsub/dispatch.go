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

// Backoff is how long a message waits after a push that failed: Least after the first, twice as long after each
// further one, at most Most.
type Backoff struct{ Min, Max time.Duration }

// DefaultBackoff is a back-off for those who watch. On the platform it is 10 s to 600 s.
var DefaultBackoff = Backoff{100 * time.Millisecond, 10 * time.Second}

// delay is the wait after a number of attempts.
func (b Backoff) delay(attempts int) time.Duration {
	wait := b.Min
	for range attempts - 1 {
		if wait *= 2; wait >= b.Max {
			break
		}
	}
	return min(wait, b.Max)
}

// DeliveryState is what became of a message.
type DeliveryState string

const (
	Waiting      DeliveryState = "waiting"       // for its first push, its answer or its next attempt
	Delivered    DeliveryState = "delivered"     // the function took it
	DeadLettered DeliveryState = "dead-lettered" // it did not, and there are no attempts left
)

// Delivery is one push and what follows from it.
type Delivery struct {
	Subscription Subscription
	Message      *pb.PubsubMessage // not to be changed
	Attempt      int
	At           time.Time // of the answer
	Response     Response
	State        DeliveryState
}

// Dispatcher pushes messages to functions as Pub/Sub does. The emulators store push subscriptions and never push, and
// pstest's own dead letters are sent again and again.
type Dispatcher struct {
	broker     *Broker
	pusher     *pusher
	backoff    Backoff
	onDelivery func(Delivery)
	cancel     context.CancelFunc
	wg         sync.WaitGroup

	mu     sync.Mutex
	ackIDs map[string]string // acknowledgement id by message id, of what is being delivered
}

const (
	maxConcurrentPushes = 16   // at once, of one subscription
	maxInFlight         = 1000 // messages of one subscription that are pushed or wait for their next attempt
)

// StartDispatcher begins to push to the doors: the URLs by function. A subscription whose function has no door is left alone.
// watch hears of each push; it is called from many goroutines and must not block.
func (b *Broker) StartDispatcher(doors map[string]string, backoff Backoff, watch func(Delivery)) *Dispatcher {
	ctx, stop := context.WithCancel(context.Background())
	d := &Dispatcher{broker: b, pusher: newPusher(doors), backoff: backoff, onDelivery: watch, cancel: stop, ackIDs: map[string]string{}}
	if b.pstest != nil {
		b.pstest.mu.Lock()
		b.pstest.isTracked = d.isInFlight
		b.pstest.mu.Unlock()
	}
	for _, s := range PushSubscriptions() {
		if doors[s.Function] != "" {
			d.wg.Go(func() { d.run(ctx, s) })
		}
	}
	return d
}

// Stop ends the pushes under way without an answer. What was not acknowledged is given back, none of it half done.
func (d *Dispatcher) Stop() {
	d.cancel()
	d.wg.Wait()
	d.pusher.client.CloseIdleConnections()
}

// Push delivers a message to the function of a subscription once, past the broker.
func (d *Dispatcher) Push(ctx context.Context, s Subscription, m *pb.PubsubMessage) Response {
	return d.pusher.push(ctx, s, d.broker.subscription(s.Name), m, 1)
}

// HasEndpoint reports whether the function of a subscription has a door.
func (d *Dispatcher) HasEndpoint(s Subscription) bool { return d.pusher.endpoints[s.Function] != "" }

func (d *Dispatcher) isInFlight(messageID string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	_, holds := d.ackIDs[messageID]
	return holds
}

// track notes what is being delivered. It reports false when it was already: then its lease ended and it came once more.
func (d *Dispatcher) track(m *pb.ReceivedMessage) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	_, again := d.ackIDs[m.Message.MessageId]
	d.ackIDs[m.Message.MessageId] = m.AckId
	return !again
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
	room := make(chan struct{}, maxInFlight)
	pushes := make(chan struct{}, maxConcurrentPushes)
	for messages := range d.broker.messages(ctx, s) {
		for _, m := range messages {
			if !d.track(m) {
				continue
			}
			select {
			case room <- struct{}{}:
			case <-ctx.Done():
				d.nack(s, m.Message)
				continue
			}
			deliveries.Go(func() {
				defer func() { <-room }()
				d.deliver(ctx, s, m.Message, pushes)
			})
		}
	}
}

// deliver pushes a message until the function takes it, or it has had its attempts and is a dead letter.
func (d *Dispatcher) deliver(ctx context.Context, s Subscription, m *pb.PubsubMessage, pushes chan struct{}) {
	for attempt := 1; ; attempt++ {
		wait := d.backoff.delay(attempt)
		// The next lease begins before this one ends. When it cannot be had, the message comes again, and only its id
		// changes.
		if err := d.broker.modifyAckDeadline(ctx, s, d.ackID(m.MessageId), s.AckDeadline+wait+leaseMargin); err != nil && ctx.Err() == nil {
			slog.Warn("broker: no lease", "subscription", s.Name, "err", err.Error())
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
			d.nack(s, m) // the answer is that of our own end
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

// deadLetter publishes a message on the dead-letter topic, as Pub/Sub does it. When that fails, the message is pushed once
// more.
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
		slog.Warn("broker: no dead letter", "subscription", s.Name, "message", m.MessageId, "err", err.Error())
	}
	return err == nil
}

const shutdownTimeout = time.Second // for the last word on a message while everything stops

// acknowledge acknowledges, also while stopping: the function has done its part.
func (d *Dispatcher) acknowledge(ctx context.Context, s Subscription, m *pb.PubsubMessage) {
	defer d.untrack(m.MessageId)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
	defer cancel()
	if err := d.broker.ack(ctx, s, d.ackID(m.MessageId)); err != nil {
		slog.Warn("broker: not acknowledged, it will come again", "subscription", s.Name, "message", m.MessageId, "err", err.Error())
	}
}

// nack lets somebody else have the message at once.
func (d *Dispatcher) nack(s Subscription, m *pb.PubsubMessage) {
	defer d.untrack(m.MessageId)
	ctx, cancel := context.WithTimeout(context.Background(), shutdownTimeout)
	defer cancel()
	_ = d.broker.modifyAckDeadline(ctx, s, d.ackID(m.MessageId), 0) // or later, when the lease ends
}

// messages yields what arrives on a subscription until ctx ends.
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
				slog.Warn("broker: cannot pull", "subscription", s.Name, "err", err.Error())
				sleep(ctx, pullRetryInterval)
			case b.pstest != nil:
				wait(ctx)
			}
		}
	}
}

const (
	pullRetryInterval = time.Second            // after an error, and for messages whose lease ended: nobody tells of those
	pollInterval      = 200 * time.Millisecond // into a broker that tells nobody when something arrives
)

// messageWaiter returns a function that waits until something may have arrived on one of the subscriptions, signal receives,
// or ctx ends.
func (b *Broker) messageWaiter(subscriptions []Subscription, signal chan struct{}) (wait func(context.Context)) {
	again := pollInterval
	if b.pstest != nil {
		again = pullRetryInterval
		for _, s := range subscriptions {
			b.pstest.notify(b.topic(s.Topic), signal)
		}
	}
	return func(ctx context.Context) {
		t := time.NewTimer(again)
		defer t.Stop()
		select {
		case <-signal:
		case <-t.C:
		case <-ctx.Done():
		}
	}
}

func sleep(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

// comparePublished orders messages as they were published.
func comparePublished(a, b *pb.PubsubMessage) int {
	return cmp.Or(a.PublishTime.AsTime().Compare(b.PublishTime.AsTime()), compareMessageIDs(a.MessageId, b.MessageId))
}
