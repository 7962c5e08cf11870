package desk

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"melmastoon.ghasi.io/bff-consumer/local/broker"
	"melmastoon.ghasi.io/bff-consumer/shared/id"
	"melmastoon.ghasi.io/bff-consumer/shared/instant"
)

// producers says who publishes a subject, and which member of the payload says when it happened.
var producers = map[string]struct{ service, when string }{
	"melmastoon.theme.published.v1":                    {"theme-config-service", "publishedAt"},
	"melmastoon.search_aggregation.listing.indexed.v1": {"search-aggregation-service", "indexedAt"},
	"melmastoon.tenant.suspended.v1":                   {"tenant-service", "suspendedAt"},
	"melmastoon.tenant.reinstated.v1":                  {"tenant-service", "reinstatedAt"},
}

// Subjects are the events of others that can be published, sorted.
func Subjects() []string { return slices.Sorted(maps.Keys(producers)) }

// members of the platform's envelope, in its order.
var members = []string{
	"eventId", "subject", "version", "occurredAt", "publishedAt", "producer", "producerInstance", "tenantId", "userId", "sessionId",
	"requestId", "traceId", "causationId", "correlationId", "schemaUri", "retentionClass", "samplingRate",
}

// Members are those of the platform's envelope.
func Members() []string { return slices.Clone(members) }

// Event is an event of somebody else.
type Event struct {
	Subject  string                    // one of Subjects
	Payload  jsontext.Value            // an object
	Envelope map[string]jsontext.Value // members that are not to be what the producer would write
	Raw      *string                   // the whole data instead, whatever it is; nil: as the producer would
}

// Publish puts an event on its topic as its producer would. Nothing in it is left to chance but the id, so that the same
// payload with the same id is the same event. eventID is "" when the data is raw.
func (d *Desk) Publish(ctx context.Context, e Event) (eventID, messageID string, err error) {
	now := time.Now().UTC()
	var data []byte
	attributes := map[string]string{"subject": e.Subject}
	if e.Raw != nil {
		data = []byte(*e.Raw)
	} else {
		envelope, err := enclose(e, now)
		if err != nil {
			return "", "", err
		}
		if data, err = encode(envelope, e.Payload); err != nil {
			return "", "", err
		}
		eventID = text(envelope["eventId"])
		attributes["eventId"] = eventID
	}
	if messageID, err = d.broker.Publish(ctx, e.Subject, data, attributes); err != nil {
		return "", "", err
	}
	d.passages.published(messageID, e.Subject, eventID, now)
	return eventID, messageID, nil
}

// enclose makes the envelope of an event, by member.
func enclose(e Event, now time.Time) (map[string]jsontext.Value, error) {
	var payload map[string]jsontext.Value
	if err := json.Unmarshal(e.Payload, &payload); err != nil {
		return nil, fmt.Errorf("desk: payload of %s: %w", e.Subject, err)
	}
	producer := producers[e.Subject]
	occurred := payload[producer.when]
	if _, err := time.Parse(time.RFC3339, text(occurred)); err != nil {
		occurred = quoted(instant.Text(now))
	}
	tenant := payload["tenantId"]
	if tenant == nil {
		tenant = jsontext.Value("null")
	}
	dot := strings.LastIndexByte(e.Subject, '.')
	name := strings.TrimPrefix(e.Subject[:dot], "melmastoon.")
	envelope := map[string]jsontext.Value{
		"eventId":          quoted(id.New(id.Event, now)),
		"subject":          quoted(e.Subject),
		"version":          jsontext.Value(e.Subject[dot+2:]),
		"occurredAt":       occurred,
		"publishedAt":      quoted(instant.Text(now)),
		"producer":         quoted(producer.service),
		"producerInstance": quoted(producer.service + "-local"),
		"tenantId":         tenant,
		"schemaUri": quoted("https://schemas.melmastoon.ghasi.io/" + strings.TrimSuffix(producer.service, "-service") + "/" +
			strings.NewReplacer(".", "-", "_", "-").Replace(name) + "/" + e.Subject[dot+1:] + ".json"),
		"retentionClass": quoted("operational"),
		"samplingRate":   jsontext.Value("1"),
	}
	maps.Copy(envelope, e.Envelope)
	for _, member := range members {
		if envelope[member] == nil {
			envelope[member] = jsontext.Value("null")
		}
	}
	return envelope, nil
}

// encode writes the event with the members of the envelope in their order.
func encode(envelope map[string]jsontext.Value, payload jsontext.Value) ([]byte, error) {
	var data bytes.Buffer
	data.WriteString(`{"envelope":{`)
	for i, member := range members {
		if i > 0 {
			data.WriteByte(',')
		}
		fmt.Fprintf(&data, "%q:%s", member, envelope[member])
	}
	fmt.Fprintf(&data, `},"payload":%s}`, payload)
	compact := jsontext.Value(data.Bytes())
	if err := compact.Compact(); err != nil {
		return nil, fmt.Errorf("desk: encode event: %w", err)
	}
	return compact, nil
}

func quoted(s string) jsontext.Value {
	value, _ := jsontext.AppendQuote(nil, s) // it is ours, and UTF-8
	return value
}

// text is a JSON string's; "" when it is none.
func text(v jsontext.Value) string {
	var s string
	if len(v) == 0 || json.Unmarshal(v, &s) != nil {
		return ""
	}
	return s
}

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
