package broker

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
type Backoff struct{ Least, Most time.Duration }

// Local is a back-off for those who watch. On the platform it is 10 s to 600 s.
var Local = Backoff{100 * time.Millisecond, 10 * time.Second}

// after is the wait after a number of attempts.
func (b Backoff) after(attempts int) time.Duration {
	wait := b.Least
	for range attempts - 1 {
		if wait *= 2; wait >= b.Most {
			break
		}
	}
	return min(wait, b.Most)
}

// State is what became of a message.
type State string

const (
	Waiting      State = "waiting"       // for its first push, its answer or its next attempt
	Delivered    State = "delivered"     // the function took it
	DeadLettered State = "dead-lettered" // it did not, and there are no attempts left
)

// Delivery is one push and what follows from it.
type Delivery struct {
	Subscription Subscription
	Message      *pb.PubsubMessage // not to be changed
	Attempt      int
	At           time.Time // of the answer
	Answer       Answer
	State        State
}

// Dispatcher pushes messages to functions as Pub/Sub does. The emulators store push subscriptions and never push, and
// pstest's own dead letters are sent again and again.
type Dispatcher struct {
	broker  *Broker
	pusher  *pusher
	backoff Backoff
	watch   func(Delivery)
	stop    context.CancelFunc
	ended   sync.WaitGroup

	mu   sync.Mutex
	held map[string]string // acknowledgement id by message id, of what is being delivered
}

const (
	maxPushes = 16   // at once, of one subscription
	maxHeld   = 1000 // messages of one subscription that are pushed or wait for their next attempt
)

// Dispatch begins to push to the doors: the URLs by function. A subscription whose function has no door is left alone.
// watch hears of each push; it is called from many goroutines and must not block.
func (b *Broker) Dispatch(doors map[string]string, backoff Backoff, watch func(Delivery)) *Dispatcher {
	ctx, stop := context.WithCancel(context.Background())
	d := &Dispatcher{broker: b, pusher: newPusher(doors), backoff: backoff, watch: watch, stop: stop, held: map[string]string{}}
	if b.own != nil {
		b.own.mu.Lock()
		b.own.held = d.holds
		b.own.mu.Unlock()
	}
	for _, s := range Pushed() {
		if doors[s.Function] != "" {
			d.ended.Go(func() { d.run(ctx, s) })
		}
	}
	return d
}

// Stop ends the pushes under way without an answer. What was not acknowledged is given back, none of it half done.
func (d *Dispatcher) Stop() {
	d.stop()
	d.ended.Wait()
	d.pusher.client.CloseIdleConnections()
}

// Push delivers a message to the function of a subscription once, past the broker.
func (d *Dispatcher) Push(ctx context.Context, s Subscription, m *pb.PubsubMessage) Answer {
	return d.pusher.push(ctx, s, d.broker.subscription(s.Name), m, 1)
}

// Reaches reports whether the function of a subscription has a door.
func (d *Dispatcher) Reaches(s Subscription) bool { return d.pusher.doors[s.Function] != "" }

func (d *Dispatcher) holds(messageID string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	_, holds := d.held[messageID]
	return holds
}

// hold notes what is being delivered. It reports false when it was already: then its lease ended and it came once more.
func (d *Dispatcher) hold(m *pb.ReceivedMessage) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	_, again := d.held[m.Message.MessageId]
	d.held[m.Message.MessageId] = m.AckId
	return !again
}

func (d *Dispatcher) ackID(messageID string) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.held[messageID]
}

func (d *Dispatcher) release(messageID string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.held, messageID)
}

// run delivers the messages of one subscription until ctx ends.
func (d *Dispatcher) run(ctx context.Context, s Subscription) {
	var deliveries sync.WaitGroup
	defer deliveries.Wait()
	room := make(chan struct{}, maxHeld)
	pushes := make(chan struct{}, maxPushes)
	for messages := range d.broker.messages(ctx, s) {
		for _, m := range messages {
			if !d.hold(m) {
				continue
			}
			select {
			case room <- struct{}{}:
			case <-ctx.Done():
				d.giveBack(s, m.Message)
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
		wait := d.backoff.after(attempt)
		// The next lease begins before this one ends. When it cannot be had, the message comes again, and only its id
		// changes.
		if err := d.broker.lease(ctx, s, d.ackID(m.MessageId), s.AckDeadline+wait+leaseMargin); err != nil && ctx.Err() == nil {
			slog.Warn("broker: no lease", "subscription", s.Name, "err", err.Error())
		}
		select {
		case pushes <- struct{}{}:
		case <-ctx.Done():
			d.giveBack(s, m)
			return
		}
		a := d.pusher.push(ctx, s, d.broker.subscription(s.Name), m, attempt)
		<-pushes
		if ctx.Err() != nil && !a.Acknowledges() {
			d.giveBack(s, m) // the answer is that of our own end
			return
		}
		state := Waiting
		switch {
		case a.Acknowledges():
			state = Delivered
		case attempt >= s.Attempts && d.bury(ctx, s, m, attempt):
			state = DeadLettered
		}
		if state != Waiting {
			d.done(ctx, s, m)
		}
		d.watch(Delivery{s, m, attempt, time.Now(), a, state})
		if state != Waiting {
			return
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			d.giveBack(s, m)
			return
		}
	}
}

const leaseMargin = 10 * time.Second

// bury publishes a message on the dead-letter topic, as Pub/Sub does it. When that fails, the message is pushed once
// more.
func (d *Dispatcher) bury(ctx context.Context, s Subscription, m *pb.PubsubMessage, attempts int) bool {
	attributes := maps.Clone(m.Attributes)
	if attributes == nil {
		attributes = map[string]string{}
	}
	attributes["CloudPubSubDeadLetterSourceDeliveryCount"] = strconv.Itoa(attempts)
	attributes["CloudPubSubDeadLetterSourceSubscription"] = s.Name
	attributes["CloudPubSubDeadLetterSourceSubscriptionProject"] = d.broker.Project
	attributes["CloudPubSubDeadLetterSourceTopicPublishTime"] = m.PublishTime.AsTime().UTC().Format(time.RFC3339Nano)
	_, err := d.broker.publish(ctx, s.DeadLetter, &pb.PubsubMessage{Data: m.Data, Attributes: attributes, OrderingKey: m.OrderingKey})
	if err != nil && ctx.Err() == nil {
		slog.Warn("broker: no dead letter", "subscription", s.Name, "message", m.MessageId, "err", err.Error())
	}
	return err == nil
}

const endWithin = time.Second // for the last word on a message while everything stops

// done acknowledges, also while stopping: the function has done its part.
func (d *Dispatcher) done(ctx context.Context, s Subscription, m *pb.PubsubMessage) {
	defer d.release(m.MessageId)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), endWithin)
	defer cancel()
	if err := d.broker.ack(ctx, s, d.ackID(m.MessageId)); err != nil {
		slog.Warn("broker: not acknowledged, it will come again", "subscription", s.Name, "message", m.MessageId, "err", err.Error())
	}
}

// giveBack lets somebody else have the message at once.
func (d *Dispatcher) giveBack(s Subscription, m *pb.PubsubMessage) {
	defer d.release(m.MessageId)
	ctx, cancel := context.WithTimeout(context.Background(), endWithin)
	defer cancel()
	_ = d.broker.lease(ctx, s, d.ackID(m.MessageId), 0) // or later, when the lease ends
}

// messages yields what arrives on a subscription until ctx ends.
func (b *Broker) messages(ctx context.Context, s Subscription) func(yield func([]*pb.ReceivedMessage) bool) {
	return func(yield func([]*pb.ReceivedMessage) bool) {
		wait := b.arrivals([]Subscription{s}, make(chan struct{}, 1))
		for ctx.Err() == nil {
			found, err := b.pull(ctx, s, maxHeld, b.own == nil)
			switch {
			case len(found) > 0:
				if !yield(found) {
					return
				}
			case err != nil && ctx.Err() == nil:
				slog.Warn("broker: cannot pull", "subscription", s.Name, "err", err.Error())
				sleep(ctx, pullAgain)
			case b.own != nil:
				wait(ctx)
			}
		}
	}
}

const (
	pullAgain = time.Second            // after an error, and for messages whose lease ended: nobody tells of those
	lookAgain = 200 * time.Millisecond // into a broker that tells nobody when something arrives
)

// arrivals returns a function that waits until something may have arrived on one of the subscriptions, signal receives,
// or ctx ends.
func (b *Broker) arrivals(subscriptions []Subscription, signal chan struct{}) (wait func(context.Context)) {
	again := lookAgain
	if b.own != nil {
		again = pullAgain
		for _, s := range subscriptions {
			b.own.tell(b.topic(s.Topic), signal)
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

// byAge orders messages as they were published.
func byAge(a, b *pb.PubsubMessage) int {
	return cmp.Or(a.PublishTime.AsTime().Compare(b.PublishTime.AsTime()), older(a.MessageId, b.MessageId))
}
