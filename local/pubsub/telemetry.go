package pubsub

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	pb "cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
)

// TelemetryLog keeps the newest messages of the telemetry topics, in the order in which they were published there. A
// subscription orders its own topic only; the events of one session are on several.
type TelemetryLog struct {
	broker   *Broker
	capacity int
	cancel   context.CancelFunc
	wg       sync.WaitGroup

	mu            sync.Mutex
	log           []TelemetryMessage
	firstIndex    int           // place of log[0]
	completeUntil time.Time     // everything published before this is in the log
	advanced      chan struct{} // closed when upTo changes
	trigger       chan struct{} // begins a round
}

// TelemetryMessage is a message on a telemetry topic.
type TelemetryMessage struct {
	Subject string
	Message *pb.PubsubMessage // not to be changed
}

// telemetryCapacity is how many messages are kept at least; it is never twice as many.
const telemetryCapacity = 10_000

// CollectTelemetry begins to collect.
func (b *Broker) CollectTelemetry() *TelemetryLog {
	ctx, stop := context.WithCancel(context.Background())
	t := &TelemetryLog{broker: b, capacity: telemetryCapacity, cancel: stop, advanced: make(chan struct{}), trigger: make(chan struct{}, 1)}
	t.wg.Go(func() { t.run(ctx) })
	return t
}

// Stop ends it; what was collected can be read still.
func (t *TelemetryLog) Stop() {
	t.cancel()
	t.wg.Wait()
}

// Read calls yield with messages from a place on, oldest first, until it returns false. It returns the place after the
// last one that yield took, and how many at the beginning were forgotten already.
func (t *TelemetryLog) Read(from int, yield func(TelemetryMessage) bool) (next, missed int) {
	t.mu.Lock()
	log, first := t.log, t.firstIndex
	t.mu.Unlock()
	end := first + len(log)
	next = min(max(from, first), end)
	missed = max(0, first-from)
	for next < end && yield(log[next-first]) {
		next++
	}
	return next, missed
}

func (t *TelemetryLog) add(subject string, m *pb.PubsubMessage) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.log = append(t.log, TelemetryMessage{subject, m})
	if len(t.log) >= 2*t.capacity { // seldom, and into new memory: somebody may be reading the old
		drop := len(t.log) - t.capacity
		t.log = slices.Clone(t.log[drop:])
		t.firstIndex += drop
	}
}

// run collects in rounds. What was published before a round began is in the broker, and no later round finds anything
// older; what is newer waits for the next round, since something older may just be arriving on another topic.
func (t *TelemetryLog) run(ctx context.Context) {
	subscriptions := TelemetrySubscriptions()
	wait := t.broker.messageWaiter(subscriptions, t.trigger)
	var early []TelemetryMessage
	for ctx.Err() == nil {
		begun := time.Now()
		ripe := begun
		if t.broker.pstest == nil {
			ripe = begun.AddDate(1, 0, 0) // its clock may be another; order between topics is what it happens to be
		}
		found, err := t.collect(ctx, subscriptions)
		if err != nil && ctx.Err() == nil {
			slog.Warn("broker: cannot collect telemetry", "err", err.Error())
			sleep(ctx, pullRetryInterval)
		}
		early = append(early, found...)
		slices.SortStableFunc(early, func(a, b TelemetryMessage) int { return comparePublished(a.Message, b.Message) })
		for len(early) > 0 && !early[0].Message.PublishTime.AsTime().After(ripe) {
			t.add(early[0].Subject, early[0].Message)
			early = early[1:]
		}
		if err != nil {
			continue
		}
		t.mu.Lock()
		t.completeUntil = begun
		close(t.advanced)
		t.advanced = make(chan struct{})
		t.mu.Unlock()
		if len(early) == 0 {
			wait(ctx)
		}
	}
}

// CatchUp returns when everything that was published by now can be read, or with the error of ctx.
func (t *TelemetryLog) CatchUp(ctx context.Context) error {
	select {
	case t.trigger <- struct{}{}:
	default: // a round begins anyway
	}
	for now := time.Now(); ; {
		t.mu.Lock()
		upTo, moved := t.completeUntil, t.advanced
		t.mu.Unlock()
		if upTo.After(now) {
			return nil
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// collect empties all subscriptions.
func (t *TelemetryLog) collect(ctx context.Context, subscriptions []Subscription) (found []TelemetryMessage, err error) {
	var mu sync.Mutex
	var all sync.WaitGroup
	for _, s := range subscriptions {
		all.Go(func() {
			for {
				messages, wrong := t.broker.pull(ctx, s, maxInFlight, false)
				var ids []string
				for _, m := range messages {
					ids = append(ids, m.AckId)
				}
				if wrong == nil {
					wrong = t.broker.ack(ctx, s, ids...)
				}
				mu.Lock()
				if wrong != nil {
					err = wrong // what was not acknowledged comes again
				} else {
					for _, m := range messages {
						found = append(found, TelemetryMessage{s.Topic, m.Message})
					}
				}
				mu.Unlock()
				if wrong != nil || len(messages) == 0 {
					return
				}
			}
		})
	}
	all.Wait()
	return found, err
}
