package desk

import (
	"slices"
	"sync"
	"time"

	"github.com/go-json-experiment/json"

	"melmastoon.ghasi.io/bff-consumer/local/broker"
)

// Passage is an event of others on its way to its function.
type Passage struct {
	EventID      string       `json:"eventId,omitzero"` // none: the data cannot be read
	MessageID    string       `json:"messageId"`
	Subject      string       `json:"subject"`
	Subscription string       `json:"subscription,omitzero"` // that delivers it
	PublishedAt  time.Time    `json:"publishedAt"`
	State        broker.State `json:"state"`
	Attempts     int          `json:"attempts"`
	DeadLetter   string       `json:"deadLetterTopic,omitzero"` // where it ended
	Outcome      *Outcome     `json:"outcome,omitzero"`         // of the last attempt
}

// Outcome is what the function said.
type Outcome struct {
	At     time.Time `json:"at"`
	Millis int64     `json:"durationMs"`
	Status int       `json:"status,omitzero"` // none: there was no answer
	Said   any       `json:"said,omitzero"`
}

// keptPassages is how many events are remembered.
const keptPassages = 1000

// passages remembers the newest events and what became of them. Publisher and dispatcher tell of one in any order.
type passages struct {
	mu    sync.Mutex
	order []string // message ids, oldest first
	byID  map[string]*Passage
}

func newPassages() *passages { return &passages{byID: map[string]*Passage{}} }

// entry is that of a message; call it with the lock held.
func (p *passages) entry(messageID, subject string, publishedAt time.Time) *Passage {
	if known := p.byID[messageID]; known != nil {
		return known
	}
	if len(p.order) == keptPassages {
		delete(p.byID, p.order[0])
		p.order = slices.Delete(p.order, 0, 1)
	}
	e := &Passage{MessageID: messageID, Subject: subject, PublishedAt: publishedAt.UTC().Truncate(time.Millisecond), State: broker.Waiting}
	p.order = append(p.order, messageID)
	p.byID[messageID] = e
	return e
}

func (p *passages) published(messageID, subject, eventID string, at time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if e := p.entry(messageID, subject, at); e.EventID == "" {
		e.EventID = eventID
	}
}

func (p *passages) pushed(d broker.Delivery) {
	p.mu.Lock()
	defer p.mu.Unlock()
	e := p.entry(d.Message.MessageId, d.Subscription.Topic, d.Message.PublishTime.AsTime())
	if e.EventID == "" {
		e.EventID = eventID(d.Message.Data)
	}
	e.Subscription, e.State, e.Attempts = d.Subscription.Name, d.State, d.Attempt
	if d.State == broker.DeadLettered {
		e.DeadLetter = d.Subscription.DeadLetter
	}
	e.Outcome = &Outcome{d.At.UTC().Truncate(time.Millisecond), d.Answer.Took.Milliseconds(), d.Answer.Status, said(d.Answer)}
}

// eventID is that of an event that somebody else published.
func eventID(data []byte) string {
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
func (d *Desk) Events() []Passage {
	d.passages.mu.Lock()
	defer d.passages.mu.Unlock()
	all := make([]Passage, 0, len(d.passages.order))
	for _, messageID := range d.passages.order {
		all = append(all, *d.passages.byID[messageID])
	}
	return all
}
