package desk

import (
	"slices"
	"sync"
	"time"

	"github.com/go-json-experiment/json"

	"melmastoon.ghasi.io/bff-consumer/local/pubsub"
)

// TrackedEvent is an event of others on its way to its function.
type TrackedEvent struct {
	EventID      string               `json:"eventId,omitzero"` // none: the data cannot be read
	MessageID    string               `json:"messageId"`
	Subject      string               `json:"subject"`
	Subscription string               `json:"subscription,omitzero"` // that delivers it
	PublishedAt  time.Time            `json:"publishedAt"`
	State        pubsub.DeliveryState `json:"state"`
	Attempts     int                  `json:"attempts"`
	DeadLetter   string               `json:"deadLetterTopic,omitzero"` // where it ended
	Outcome      *Outcome             `json:"outcome,omitzero"`         // of the last attempt
}

// Outcome is what the function said.
type Outcome struct {
	At         time.Time `json:"at"`
	DurationMs int64     `json:"durationMs"`
	Status     int       `json:"status,omitzero"` // none: there was no answer
	Body       any       `json:"said,omitzero"`
}

// maxTrackedEvents is how many events are remembered.
const maxTrackedEvents = 1000

// eventTracker remembers the newest events and what became of them. Publisher and dispatcher tell of one in any order.
type eventTracker struct {
	mu    sync.Mutex
	order []string // message ids, oldest first
	byID  map[string]*TrackedEvent
}

func newEventTracker() *eventTracker { return &eventTracker{byID: map[string]*TrackedEvent{}} }

// entry is that of a message; call it with the lock held.
func (p *eventTracker) entry(messageID, subject string, publishedAt time.Time) *TrackedEvent {
	if known := p.byID[messageID]; known != nil {
		return known
	}
	if len(p.order) == maxTrackedEvents {
		delete(p.byID, p.order[0])
		p.order = slices.Delete(p.order, 0, 1)
	}
	e := &TrackedEvent{MessageID: messageID, Subject: subject, PublishedAt: publishedAt.UTC().Truncate(time.Millisecond), State: pubsub.Waiting}
	p.order = append(p.order, messageID)
	p.byID[messageID] = e
	return e
}

func (p *eventTracker) recordPublished(messageID, subject, eventID string, at time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if e := p.entry(messageID, subject, at); e.EventID == "" {
		e.EventID = eventID
	}
}

func (p *eventTracker) recordDelivery(d pubsub.Delivery) {
	p.mu.Lock()
	defer p.mu.Unlock()
	e := p.entry(d.Message.MessageId, d.Subscription.Topic, d.Message.PublishTime.AsTime())
	if e.EventID == "" {
		e.EventID = parseEventID(d.Message.Data)
	}
	e.Subscription, e.State, e.Attempts = d.Subscription.Name, d.State, d.Attempt
	if d.State == pubsub.DeadLettered {
		e.DeadLetter = d.Subscription.DeadLetterTopic
	}
	e.Outcome = &Outcome{d.At.UTC().Truncate(time.Millisecond), d.Response.Duration.Milliseconds(), d.Response.Status, responseReport(d.Response)}
}

// parseEventID is that of an event that somebody else published.
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

// Events lists the events of others, oldest first.
func (d *Service) Events() []TrackedEvent {
	d.tracker.mu.Lock()
	defer d.tracker.mu.Unlock()
	all := make([]TrackedEvent, 0, len(d.tracker.order))
	for _, messageID := range d.tracker.order {
		all = append(all, *d.tracker.byID[messageID])
	}
	return all
}
