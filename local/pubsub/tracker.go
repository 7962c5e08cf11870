package pubsub

import (
	"slices"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
)

// TrackedEvent is a platform event with the state of its delivery to a function.
type TrackedEvent struct {
	EventID      string        `json:"eventId,omitzero"` // empty if the data is not an event
	MessageID    string        `json:"messageId"`
	Subject      string        `json:"subject"`
	Subscription string        `json:"subscription,omitzero"` // empty before the first push
	PublishedAt  time.Time     `json:"publishedAt"`
	State        DeliveryState `json:"state"`
	Attempts     int           `json:"attempts"`
	DeadLetter   string        `json:"deadLetterTopic,omitzero"` // set in state dead-lettered
	Outcome      *Outcome      `json:"outcome,omitzero"`         // of the latest attempt
}

// Outcome is a function's response to one push.
type Outcome struct {
	At         time.Time `json:"at"`
	DurationMs int64     `json:"durationMs"`
	Status     int       `json:"status,omitzero"` // 0 without a response
	Body       any       `json:"said,omitzero"`   // see Response.Report
}

// maxTrackedEvents bounds the memory of eventTracker; the oldest event is dropped first.
const maxTrackedEvents = 1000

// eventTracker keeps the newest events and the state of their delivery. The publisher and the
// dispatcher may report the same message in either order. It is safe for concurrent use.
type eventTracker struct {
	mu    sync.Mutex
	order []string // message ids, oldest first
	byID  map[string]*TrackedEvent
}

func newEventTracker() *eventTracker { return &eventTracker{byID: map[string]*TrackedEvent{}} }

// entry returns the entry of a message and adds a missing entry. The caller holds mu.
func (t *eventTracker) entry(messageID, subject string, publishedAt time.Time) *TrackedEvent {
	if known := t.byID[messageID]; known != nil {
		return known
	}
	if len(t.order) == maxTrackedEvents {
		delete(t.byID, t.order[0])
		t.order = slices.Delete(t.order, 0, 1)
	}
	e := &TrackedEvent{MessageID: messageID, Subject: subject, PublishedAt: publishedAt.UTC().Truncate(time.Millisecond), State: Waiting}
	t.order = append(t.order, messageID)
	t.byID[messageID] = e
	return e
}

func (t *eventTracker) recordPublished(messageID, subject, eventID string, at time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if e := t.entry(messageID, subject, at); e.EventID == "" {
		e.EventID = eventID
	}
}

func (t *eventTracker) recordDelivery(d Delivery) {
	t.mu.Lock()
	defer t.mu.Unlock()
	e := t.entry(d.Message.MessageId, d.Subscription.Topic, d.Message.PublishTime.AsTime())
	if e.EventID == "" {
		e.EventID = parseEventID(d.Message.Data)
	}
	e.Subscription, e.State, e.Attempts = d.Subscription.Name, d.State, d.Attempt
	if d.State == DeadLettered {
		e.DeadLetter = d.Subscription.DeadLetterTopic
	}
	e.Outcome = &Outcome{d.At.UTC().Truncate(time.Millisecond), d.Response.Duration.Milliseconds(), d.Response.Status, d.Response.Report()}
}

// list returns copies of all entries, oldest first.
func (t *eventTracker) list() []TrackedEvent {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := make([]TrackedEvent, 0, len(t.order))
	for _, messageID := range t.order {
		all = append(all, *t.byID[messageID])
	}
	return all
}

// parseEventID reads the event id from the data of a message that Publish did not send. It returns
// "" if the data is not an event.
func parseEventID(data []byte) string {
	var e struct {
		Envelope struct {
			EventID string `json:"eventId"`
		} `json:"envelope"`
	}
	if json.Unmarshal(data, &e) != nil {
		return ""
	}
	return e.Envelope.EventID
}

// RecordDelivery updates the state of the delivered event. It ignores deliveries of job
// subscriptions. It does not block on input or output.
func (p *PlatformEvents) RecordDelivery(d Delivery) {
	if _, isJob := d.Subscription.JobName(); !isJob {
		p.tracker.recordDelivery(d)
	}
}

// List returns the newest 1,000 events at most, oldest first, as copies.
func (p *PlatformEvents) List() []TrackedEvent { return p.tracker.list() }
