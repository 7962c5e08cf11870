package broker

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	pb "cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
)

// Telemetry keeps the newest messages of the telemetry topics, in the order in which they were published there. A
// subscription orders its own topic only; the events of one session are on several.
type Telemetry struct {
	broker *Broker
	most   int
	stop   context.CancelFunc
	ended  sync.WaitGroup

	mu    sync.Mutex
	log   []Told
	first int           // place of log[0]
	upTo  time.Time     // everything published before this is in the log
	moved chan struct{} // closed when upTo changes
	nudge chan struct{} // begins a round
}

// Told is a message on a telemetry topic.
type Told struct {
	Subject string
	Message *pb.PubsubMessage // not to be changed
}

// keptTelemetry is how many messages are kept at least; it is never twice as many.
const keptTelemetry = 10_000

// Listen begins to collect.
func (b *Broker) Listen() *Telemetry {
	ctx, stop := context.WithCancel(context.Background())
	t := &Telemetry{broker: b, most: keptTelemetry, stop: stop, moved: make(chan struct{}), nudge: make(chan struct{}, 1)}
	t.ended.Go(func() { t.run(ctx) })
	return t
}

// Stop ends it; what was collected can be read still.
func (t *Telemetry) Stop() {
	t.stop()
	t.ended.Wait()
}

// Read calls yield with messages from a place on, oldest first, until it returns false. It returns the place after the
// last one that yield took, and how many at the beginning were forgotten already.
func (t *Telemetry) Read(from int, yield func(Told) bool) (next, missed int) {
	t.mu.Lock()
	log, first := t.log, t.first
	t.mu.Unlock()
	end := first + len(log)
	next = min(max(from, first), end)
	missed = max(0, first-from)
	for next < end && yield(log[next-first]) {
		next++
	}
	return next, missed
}

func (t *Telemetry) add(subject string, m *pb.PubsubMessage) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.log = append(t.log, Told{subject, m})
	if len(t.log) >= 2*t.most { // seldom, and into new memory: somebody may be reading the old
		drop := len(t.log) - t.most
		t.log = slices.Clone(t.log[drop:])
		t.first += drop
	}
}

// run collects in rounds. What was published before a round began is in the broker, and no later round finds anything
// older; what is newer waits for the next round, since something older may just be arriving on another topic.
func (t *Telemetry) run(ctx context.Context) {
	subscriptions := Published()
	wait := t.broker.arrivals(subscriptions, t.nudge)
	var early []Told
	for ctx.Err() == nil {
		begun := time.Now()
		ripe := begun
		if t.broker.own == nil {
			ripe = begun.AddDate(1, 0, 0) // its clock may be another; order between topics is what it happens to be
		}
		found, err := t.round(ctx, subscriptions)
		if err != nil && ctx.Err() == nil {
			slog.Warn("broker: cannot collect telemetry", "err", err.Error())
			sleep(ctx, pullAgain)
		}
		early = append(early, found...)
		slices.SortStableFunc(early, func(a, b Told) int { return byAge(a.Message, b.Message) })
		for len(early) > 0 && !early[0].Message.PublishTime.AsTime().After(ripe) {
			t.add(early[0].Subject, early[0].Message)
			early = early[1:]
		}
		if err != nil {
			continue
		}
		t.mu.Lock()
		t.upTo = begun
		close(t.moved)
		t.moved = make(chan struct{})
		t.mu.Unlock()
		if len(early) == 0 {
			wait(ctx)
		}
	}
}

// CatchUp returns when everything that was published by now can be read, or with the error of ctx.
func (t *Telemetry) CatchUp(ctx context.Context) error {
	select {
	case t.nudge <- struct{}{}:
	default: // a round begins anyway
	}
	for now := time.Now(); ; {
		t.mu.Lock()
		upTo, moved := t.upTo, t.moved
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

// round empties all subscriptions.
func (t *Telemetry) round(ctx context.Context, subscriptions []Subscription) (found []Told, err error) {
	var mu sync.Mutex
	var all sync.WaitGroup
	for _, s := range subscriptions {
		all.Go(func() {
			for {
				messages, wrong := t.broker.pull(ctx, s, maxHeld, false)
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
						found = append(found, Told{s.Topic, m.Message})
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
