// Package event owns the telemetry this service publishes: the payload of every subject, the envelope
// around it, the schemas both must satisfy, and the choice of what is sampled. It never stores or sends
// anything, and it has no field in which a guest's own words, address or browser could travel.
package event

import (
	"fmt"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"melmastoon.ghasi.io/bff-consumer/shared/id"
	"melmastoon.ghasi.io/bff-consumer/shared/timestamp"
)

// Producer is the name of this service in every envelope.
const Producer = "bff-consumer-service"

// Retention says how long an event is kept by those who read it.
type Retention string

// Retention classes.
const (
	Operational Retention = "operational" // 90 days
	Audit       Retention = "audit"       // one year, immutable
)

// Meta is what an event inherits from the request or the job that causes it.
type Meta struct {
	SessionID    string    // gms_<ulid>; empty when there is no session yet
	RequestID    string    // empty outside a request
	Traceparent  string    // W3C header value; empty outside a trace
	Instance     string    // which instance of the service speaks; empty: the service's own name
	Now          time.Time // when it happened
	SamplingRate float64   // share of sessions that report this subject, 0 < rate ≤ 1; 0 means 1
	ID           string    // evt_<ulid> of an event that may be told twice, or has its place in an id.Series; empty: a new one
}

// Payload is one of the structs of this package: the part of a message that differs by subject.
type Payload interface {
	// Subject is the full subject, melmastoon.bff.consumer.<aggregate>.<verb>.v<n>.
	Subject() string
}

// Event is one message before it is published. Its JSON is {"envelope": …, "payload": …}; in the
// envelope tenantId is always null, because this surface is cross-tenant.
type Event struct {
	ID             string // evt_<ulid>, what consumers deduplicate by
	Subject        string
	Version        int
	OccurredAt     time.Time // UTC, milliseconds
	PublishedAt    time.Time // zero until the relay sets it, and absent from the JSON as long
	Instance       string
	SessionID      string
	RequestID      string
	Traceparent    string
	SchemaURI      string
	RetentionClass Retention
	SamplingRate   float64
	Payload        Payload
}

// New wraps p in its envelope and gives it an id, unless m has one. It reads no clock: m.Now is when it happened.
func New(m Meta, p Payload) Event {
	subject := p.Subject()
	e := Event{
		ID:             m.ID,
		Subject:        subject,
		Version:        version(subject),
		OccurredAt:     m.Now.UTC().Truncate(time.Millisecond),
		Instance:       m.Instance,
		SessionID:      m.SessionID,
		RequestID:      m.RequestID,
		Traceparent:    m.Traceparent,
		SchemaURI:      SchemaURI(subject),
		RetentionClass: catalogue[subject].retention,
		SamplingRate:   m.SamplingRate,
		Payload:        p,
	}
	if e.ID == "" {
		e.ID = id.New(id.Event, m.Now)
	}
	if e.Instance == "" {
		e.Instance = Producer
	}
	if e.SamplingRate == 0 {
		e.SamplingRate = 1
	}
	return e
}

// OrderingKey keeps the events of one session in order; empty means that order does not matter.
func (e Event) OrderingKey() string { return e.SessionID }

// Attributes repeat in the message's attributes what a reader needs before it opens the body. Empty values are left out.
type Attributes struct {
	EventID        string    `json:"eventId,omitempty"`
	OrderingKey    string    `json:"orderingKey,omitempty"`
	RetentionClass Retention `json:"retentionClass,omitempty"`
	SchemaURI      string    `json:"schemaUri,omitempty"`
	Subject        string    `json:"subject,omitempty"`
	Traceparent    string    `json:"traceparent,omitempty"`
}

// Attributes of this event.
func (e Event) Attributes() Attributes {
	return Attributes{e.ID, e.OrderingKey(), e.RetentionClass, e.SchemaURI, e.Subject, e.Traceparent}
}

// message is an event on the wire; its payload is a Payload on the way out, and not decoded yet on the way in.
type message[P any] struct {
	Envelope envelope `json:"envelope"`
	Payload  P        `json:"payload"`
}

type envelope struct {
	EventID          string    `json:"eventId"`
	Subject          string    `json:"subject"`
	Version          int       `json:"version"`
	OccurredAt       time.Time `json:"occurredAt"`
	PublishedAt      time.Time `json:"publishedAt,omitzero"`
	Producer         string    `json:"producer"`
	ProducerInstance string    `json:"producerInstance"`
	TenantID         *string   `json:"tenantId"`
	UserID           *string   `json:"userId"`
	SessionID        *string   `json:"sessionId"`
	RequestID        *string   `json:"requestId"`
	TraceID          *string   `json:"traceId"`
	CausationID      *string   `json:"causationId"`
	CorrelationID    *string   `json:"correlationId"`
	SchemaURI        string    `json:"schemaUri"`
	RetentionClass   Retention `json:"retentionClass"`
	SamplingRate     float64   `json:"samplingRate"`
}

// jsonOptions is how everything in a message is encoded: instants in UTC with milliseconds, maps in one order.
var jsonOptions = json.JoinOptions(
	json.Deterministic(true),
	json.WithMarshalers(json.MarshalToFunc(func(to *jsontext.Encoder, t time.Time) error {
		return to.WriteValue(t.UTC().AppendFormat(to.AvailableBuffer(), `"`+timestamp.Layout+`"`))
	})),
)

// MarshalJSON writes the message as it is stored and published.
func (e Event) MarshalJSON() ([]byte, error) {
	text, err := json.Marshal(message[Payload]{
		Envelope: envelope{
			EventID:          e.ID,
			Subject:          e.Subject,
			Version:          e.Version,
			OccurredAt:       e.OccurredAt,
			PublishedAt:      e.PublishedAt,
			Producer:         Producer,
			ProducerInstance: e.Instance,
			SessionID:        nullable(e.SessionID),
			RequestID:        nullable(e.RequestID),
			TraceID:          nullable(e.Traceparent),
			CorrelationID:    nullable(e.RequestID),
			SchemaURI:        e.SchemaURI,
			RetentionClass:   e.RetentionClass,
			SamplingRate:     e.SamplingRate,
		},
		Payload: e.Payload,
	}, jsonOptions)
	if err != nil {
		return nil, fmt.Errorf("event: encode %s: %w", e.Subject, err)
	}
	return text, nil
}

// UnmarshalJSON reads a message of a known subject. Fields it does not know are ignored, so that a
// message of a newer writer still reads; an unknown subject is an error.
func (e *Event) UnmarshalJSON(data []byte) error {
	var m message[jsontext.Value]
	if err := json.Unmarshal(data, &m); err != nil {
		return fmt.Errorf("event: decode: %w", err)
	}
	known, ok := catalogue[m.Envelope.Subject]
	if !ok {
		return fmt.Errorf("event: decode: unknown subject %q", m.Envelope.Subject)
	}
	payload, err := known.decode(m.Payload)
	if err != nil {
		return fmt.Errorf("event: decode %s: %w", m.Envelope.Subject, err)
	}
	*e = Event{
		ID:             m.Envelope.EventID,
		Subject:        m.Envelope.Subject,
		Version:        m.Envelope.Version,
		OccurredAt:     m.Envelope.OccurredAt,
		PublishedAt:    m.Envelope.PublishedAt,
		Instance:       m.Envelope.ProducerInstance,
		SessionID:      deref(m.Envelope.SessionID),
		RequestID:      deref(m.Envelope.RequestID),
		Traceparent:    deref(m.Envelope.TraceID),
		SchemaURI:      m.Envelope.SchemaURI,
		RetentionClass: m.Envelope.RetentionClass,
		SamplingRate:   m.Envelope.SamplingRate,
		Payload:        payload,
	}
	return nil
}

func nullable(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

func deref(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
