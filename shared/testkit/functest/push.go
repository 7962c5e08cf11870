package functest

import (
	"encoding/json"
	"testing"
	"time"

	"melmastoon.ghasi.io/bff-consumer/shared/id"
)

// PushMessage is a Pub/Sub message as a push subscription delivers it, wrapped in JSON. The zero
// value is a message without data.
type PushMessage struct {
	Data            string
	ID              string // message id; "" means "1"
	Attributes      map[string]string
	OrderingKey     string
	PublishTime     time.Time // zero means a fixed time
	Subscription    string    // "" means "projects/p/subscriptions/s"
	DeliveryAttempt int       // 0 leaves the field out
}

// Body returns the body of the push request.
func (m PushMessage) Body(t testing.TB) string {
	t.Helper()
	type message struct {
		Data        []byte            `json:"data,omitempty"` // in base64
		MessageID   string            `json:"messageId"`
		PublishTime time.Time         `json:"publishTime"`
		Attributes  map[string]string `json:"attributes"`
		OrderingKey string            `json:"orderingKey,omitempty"`
	}
	wrapped := struct {
		Message         message `json:"message"`
		Subscription    string  `json:"subscription"`
		DeliveryAttempt int     `json:"deliveryAttempt,omitempty"`
	}{
		Message: message{
			Data: []byte(m.Data), MessageID: m.ID, PublishTime: m.PublishTime, Attributes: m.Attributes, OrderingKey: m.OrderingKey,
		},
		Subscription: m.Subscription, DeliveryAttempt: m.DeliveryAttempt,
	}
	if wrapped.Message.MessageID == "" {
		wrapped.Message.MessageID = "1"
	}
	if wrapped.Message.PublishTime.IsZero() {
		wrapped.Message.PublishTime = time.Date(2026, 11, 20, 12, 0, 0, 123456000, time.UTC)
	}
	if wrapped.Message.Attributes == nil {
		wrapped.Message.Attributes = map[string]string{}
	}
	if wrapped.Subscription == "" {
		wrapped.Subscription = "projects/p/subscriptions/s"
	}
	body, err := json.Marshal(wrapped)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

// Push delivers a message to path as Pub/Sub does and checks the response as Send does. Status 200
// acknowledges the message.
func (h *Harness) Push(path string, m PushMessage) *Result {
	h.T.Helper()
	return h.Do("POST", path, "", m.Body(h.T))
}

// PlatformEvent is an event that another service of the platform publishes.
type PlatformEvent struct {
	ID      string
	Subject string // "melmastoon.tenant.suspended.v1"
	Payload string // JSON
}

// NewPlatformEvent returns an event with a new id.
func NewPlatformEvent(subject, payload string) PlatformEvent {
	return PlatformEvent{ID: id.New(id.Event, time.Now()), Subject: subject, Payload: payload}
}

// Data returns the message data: the envelope and the payload as JSON. Payload is inserted as it
// is, also when it is not JSON.
func (e PlatformEvent) Data() string {
	return `{"envelope":{"eventId":"` + e.ID + `","subject":"` + e.Subject + `","version":1,` +
		`"occurredAt":"2026-11-20T12:00:00.000Z","publishedAt":"2026-11-20T12:00:00.100Z",` +
		`"producer":"tenant-service","tenantId":null,"requestId":"r","traceId":"t"},"payload":` + e.Payload + `}`
}

// Message returns the push message of the event. Its message id depends on the event id.
func (e PlatformEvent) Message() PushMessage {
	return PushMessage{Data: e.Data(), ID: "m-" + e.ID, DeliveryAttempt: 2}
}

// IsProcessed reports whether the inbox has recorded the effect of an event.
func (h *Harness) IsProcessed(eventID string) bool {
	h.T.Helper()
	return h.Count("inbox WHERE event_id = $1::text AND processed_at IS NOT NULL", eventID) > 0
}

// Quarantined returns the number of messages in the inbox's quarantine.
func (h *Harness) Quarantined() int {
	h.T.Helper()
	return h.Count("inbox_parked")
}

// PendingEvents returns the number of outbox rows that are not published yet.
func (h *Harness) PendingEvents() int {
	h.T.Helper()
	return h.Count("outbox WHERE published_at IS NULL")
}
