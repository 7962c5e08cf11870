package pubsub

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	pb "cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
)

// TelemetryLog keeps the newest messages of the telemetry topics in publish order across topics. A
// subscription keeps the order within its topic only, and the events of a session are on several
// topics. It is safe for concurrent use.
type TelemetryLog struct {
	broker   *Broker
	capacity int
	cancel   context.CancelFunc
	wg       sync.WaitGroup

	mu            sync.Mutex
	log           []TelemetryMessage
	firstIndex    int           // position of log[0]
	completeUntil time.Time     // every message published before this time is in the log
	advanced      chan struct{} // closed and replaced when completeUntil changes
	trigger       chan struct{} // starts a round of collection
}

// TelemetryMessage is a message on a telemetry topic.
type TelemetryMessage struct {
	Subject string
	Message *pb.PubsubMessage // read-only
}

// telemetryCapacity is the number of newest messages that the log always keeps. The log stays below
// twice this number.
const telemetryCapacity = 10_000

// CollectTelemetry starts to collect the telemetry topics in the background until Stop, and returns
// at once. If the broker does not answer, the log logs a warning and retries every second.
func (b *Broker) CollectTelemetry() *TelemetryLog {
	ctx, stop := context.WithCancel(context.Background())
	t := &TelemetryLog{broker: b, capacity: telemetryCapacity, cancel: stop, advanced: make(chan struct{}), trigger: make(chan struct{}, 1)}
	t.wg.Go(func() { t.run(ctx) })
	return t
}

// Stop ends the collection and waits for its goroutine. Read still returns the collected messages.
func (t *TelemetryLog) Stop() {
	t.cancel()
	t.wg.Wait()
}

// Read passes the messages from position from on to yield, oldest first, until yield returns false.
// It returns the position of the first message that yield did not accept, and the number of
// requested messages that the log has dropped. Read does no input or output and holds no lock while
// it calls yield.
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
	if len(t.log) >= 2*t.capacity { // a copy into new memory, because Read may be using the old
		drop := len(t.log) - t.capacity
		t.log = slices.Clone(t.log[drop:])
		t.firstIndex += drop
	}
}

// run collects in rounds until ctx ends. Messages published before a round began are in the broker,
// so no later round finds older messages, and run adds them to the log. Newer messages wait for the
// next round, because an older message may be arriving on another topic.
func (t *TelemetryLog) run(ctx context.Context) {
	subscriptions := TelemetrySubscriptions()
	wait := t.broker.messageWaiter(subscriptions, t.trigger)
	var pending []TelemetryMessage
	for ctx.Err() == nil {
		begun := time.Now()
		limit := begun
		if t.broker.pstest == nil {
			// The clock of an external emulator may differ, so no message waits for the next round.
			// The order between topics may then deviate.
			limit = begun.AddDate(1, 0, 0)
		}
		found, err := t.collect(ctx, subscriptions)
		if err != nil && ctx.Err() == nil {
			slog.Warn("pubsub: cannot collect telemetry", "err", err.Error())
			sleep(ctx, pullRetryInterval)
		}
		pending = append(pending, found...)
		slices.SortStableFunc(pending, func(a, b TelemetryMessage) int { return comparePublished(a.Message, b.Message) })
		for len(pending) > 0 && !pending[0].Message.PublishTime.AsTime().After(limit) {
			t.add(pending[0].Subject, pending[0].Message)
			pending = pending[1:]
		}
		if err != nil {
			continue
		}
		t.mu.Lock()
		t.completeUntil = begun
		close(t.advanced)
		t.advanced = make(chan struct{})
		t.mu.Unlock()
		if len(pending) == 0 {
			wait(ctx)
		}
	}
}

// CatchUp waits until Read returns every message published before the call. It returns the error of
// ctx if ctx ends first, as happens without a broker and after Stop.
func (t *TelemetryLog) CatchUp(ctx context.Context) error {
	select {
	case t.trigger <- struct{}{}:
	default: // a trigger is pending
	}
	for now := time.Now(); ; {
		t.mu.Lock()
		completeUntil, advanced := t.completeUntil, t.advanced
		t.mu.Unlock()
		if completeUntil.After(now) {
			return nil
		}
		select {
		case <-advanced:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// collect pulls and acknowledges the messages of all subscriptions, in parallel, until each is
// empty. On an error it returns the messages of the subscriptions that worked; the broker delivers
// unacknowledged messages again.
func (t *TelemetryLog) collect(ctx context.Context, subscriptions []Subscription) (found []TelemetryMessage, err error) {
	var mu sync.Mutex
	var all sync.WaitGroup
	for _, s := range subscriptions {
		all.Go(func() {
			for {
				messages, pullErr := t.broker.pull(ctx, s, maxInFlight, false)
				var ids []string
				for _, m := range messages {
					ids = append(ids, m.AckId)
				}
				if pullErr == nil {
					pullErr = t.broker.ack(ctx, s, ids...)
				}
				mu.Lock()
				if pullErr != nil {
					err = pullErr
				} else {
					for _, m := range messages {
						found = append(found, TelemetryMessage{s.Topic, m.Message})
					}
				}
				mu.Unlock()
				if pullErr != nil || len(messages) == 0 {
					return
				}
			}
		})
	}
	all.Wait()
	return found, err
}
