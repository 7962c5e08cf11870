// Package event owns the events that this service publishes: the payload of every subject, the
// envelope, the JSON Schemas of both, and the sampling of sessions. It never stores or sends an
// event. No field can hold a guest's own words, address or user agent.
package event

import (
	"fmt"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"melmastoon.ghasi.io/bff-consumer/shared/id"
	"melmastoon.ghasi.io/bff-consumer/shared/timestamp"
)

// Producer names this service in every envelope.
const Producer = "bff-consumer-service"

// Retention tells consumers how long to keep an event.
type Retention string

// Retention classes.
const (
	Operational Retention = "operational" // 90 days
	Audit       Retention = "audit"       // one year, immutable
)

// Meta holds the fields that an event takes from its request or job.
type Meta struct {
	SessionID    string    // gms_<ulid>; empty when there is no session yet
	RequestID    string    // empty outside a request
	Traceparent  string    // W3C header value; empty outside a trace
	Instance     string    // instance of the service; empty means the name of the service
	Now          time.Time // time of the event
	SamplingRate float64   // share of sessions that report this subject, 0 < rate ≤ 1; 0 means 1
	// evt_<ulid> of an event that a client may report twice, or from an id.Monotonic; empty means a
	// new id
	ID string
}

// Payload is the part of a message that differs by subject: one of the structs of this package.
type Payload interface {
	// Subject is the full subject, melmastoon.bff.consumer.<aggregate>.<verb>.v<n>.
	Subject() string
}

// Event is one message before its publication. Its JSON is {"envelope": …, "payload": …}. The
// envelope's tenantId is always null, because this service serves all tenants.
type Event struct {
	ID             string // evt_<ulid>; consumers deduplicate by it
	Subject        string
	Version        int
	OccurredAt     time.Time // UTC, milliseconds
	PublishedAt    time.Time // set by the relay; zero before, and then absent from the JSON
	Instance       string
	SessionID      string
	RequestID      string
	Traceparent    string
	SchemaURI      string
	RetentionClass Retention
	SamplingRate   float64
	Payload        Payload
}

// New wraps p, one of the structs of this package, in an envelope with the id of m, or a new id.
// New reads no clock: m.Now is the time of the event, cut to milliseconds. New validates nothing
// and does no I/O; only a new id takes a mutex of the process (see id.New). A nil p panics. Safe
// for concurrent use.
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

// OrderingKey returns the Pub/Sub ordering key, the session id: events of a session arrive in
// order. An event without a session has the key "" and no order.
func (e Event) OrderingKey() string { return e.SessionID }

// Attributes are the attributes of the Pub/Sub message. They repeat fields that a consumer needs
// without decoding the body. Empty values are left out.
type Attributes struct {
	EventID        string    `json:"eventId,omitempty"`
	OrderingKey    string    `json:"orderingKey,omitempty"`
	RetentionClass Retention `json:"retentionClass,omitempty"`
	SchemaURI      string    `json:"schemaUri,omitempty"`
	Subject        string    `json:"subject,omitempty"`
	Traceparent    string    `json:"traceparent,omitempty"`
}

// Attributes returns the attributes of e's Pub/Sub message. It never fails.
func (e Event) Attributes() Attributes {
	return Attributes{e.ID, e.OrderingKey(), e.RetentionClass, e.SchemaURI, e.Subject, e.Traceparent}
}

// message is the JSON form of an event. P is Payload when encoding, and raw JSON when decoding.
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

// jsonOptions encode times in UTC with milliseconds and maps in a fixed order.
var jsonOptions = json.JoinOptions(
	json.Deterministic(true),
	json.WithMarshalers(json.MarshalToFunc(func(to *jsontext.Encoder, t time.Time) error {
		return to.WriteValue(t.UTC().AppendFormat(to.AvailableBuffer(), `"`+timestamp.Layout+`"`))
	})),
)

// MarshalJSON encodes the message as stored in the outbox: times in UTC with milliseconds, members
// in a fixed order. MarshalJSON does no I/O and does not check the schema. Only a value without a
// JSON form gives nil and an error: invalid UTF-8 in a text, a NaN or an infinity.
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

// UnmarshalJSON decodes a message. It ignores unknown fields, so that old code reads messages of
// newer code, and does not check the schema: a missing member of the envelope stays zero. It
// returns an error for an unknown subject, a missing payload or malformed JSON; e is unchanged
// then. The error may repeat parts of the message.
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
