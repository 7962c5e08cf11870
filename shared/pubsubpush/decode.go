// Package pubsubpush decodes messages delivered by Pub/Sub: wrapped pushes, and CloudEvents in
// binary or structured mode. It never interprets the data of a message, except the options of jobs.
package pubsubpush

import (
	"encoding/base64"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"melmastoon.ghasi.io/bff-consumer/shared/web"
)

// maxBody limits the bytes read of a request. Events and options have a hundredth of the limit.
const maxBody = 1 << 20

// Message is a delivered message.
type Message struct {
	ID string // of the CloudEvent, or the message id of Pub/Sub
	// an event as JSON {"envelope","payload"}, or the options of a job; nil without data
	Data        []byte
	Attributes  map[string]string // never nil
	OrderingKey string
	// Subscription is the full name, "projects/p/subscriptions/s"; empty when missing.
	Subscription string
	Attempt      int       // number of the delivery, from 1; 1 when missing
	Published    time.Time // zero when missing
	Body         []byte    // the raw request body, at most 1 MiB
}

// MalformedError is the error for an unreadable message. Another delivery would not help. Reason is
// a single line and repeats at most 100 bytes of the request.
type MalformedError struct{ Reason string }

func (m *MalformedError) Error() string { return "pubsubpush: " + m.Reason }

func malformedf(format string, args ...any) error {
	return &MalformedError{fmt.Sprintf(format, args...)}
}

// Decode reads the request to its end, keeps at most 1 MiB in memory, and decodes the message. For
// an unreadable message, and for a body over 1 MiB, the error is a *MalformedError, and the Message
// has the readable fields and always Body. Any other error is a 400 problem: the request was
// truncated, or its deadline passed while reading; Body is nil then. Decode uses no store and no
// lock, and never panics: a panic of the CloudEvents SDK becomes a *MalformedError.
func Decode(r *http.Request) (Message, error) {
	m := Message{Attributes: map[string]string{}, Attempt: 1}
	body, whole, err := web.ReadPrefix(r, maxBody)
	m.Body = body
	switch {
	case err != nil:
		return m, err
	case !whole:
		return m, malformedf("the body is larger than %d bytes", maxBody)
	}
	media := strings.ToLower(r.Header.Get("Content-Type"))
	if kind, _, err := mime.ParseMediaType(media); err == nil {
		media = kind
	}
	structured := strings.HasPrefix(media, "application/cloudevents")
	binary := r.Header.Get("Ce-Id")+r.Header.Get("Ce-Specversion") != ""
	switch {
	case strings.HasPrefix(media, "application/cloudevents-batch"):
		return m, malformedf("a batch of CloudEvents")
	case structured || binary:
		return m, m.decodeCloudEvent(r)
	}
	if err := m.unwrap(body); err != nil {
		return m, err
	}
	if m.ID == "" {
		return m, malformedf("the message has no id")
	}
	return m, nil
}

// pushBody is the body of a push. Unknown members are ignored: Pub/Sub repeats messageId and
// publishTime in snake case.
type pushBody struct {
	Message         *pubsubMessage `json:"message"`
	Subscription    string         `json:"subscription"`
	DeliveryAttempt *int           `json:"deliveryAttempt"`
}

type pubsubMessage struct {
	Data        *string           `json:"data"`
	Attributes  map[string]string `json:"attributes"`
	MessageID   string            `json:"messageId"`
	PublishTime string            `json:"publishTime"`
	OrderingKey string            `json:"orderingKey"`
}

// unwrap decodes the body of a push into m. On an error m has the readable fields.
func (m *Message) unwrap(body []byte) error {
	var w pushBody
	if len(body) == 0 {
		return malformedf("the body is empty")
	}
	if err := json.Unmarshal(body, &w); err != nil {
		m.setFields(&w)
		return malformedf("the push is %s", describeJSONError(err))
	}
	return m.setFields(&w)
}

// setFields copies the fields of a push into m. Fields of an enclosing CloudEvent have precedence
// for the id.
func (m *Message) setFields(w *pushBody) error {
	if w.Subscription != "" {
		m.Subscription = w.Subscription
	}
	if w.DeliveryAttempt != nil {
		m.Attempt = max(*w.DeliveryAttempt, 1)
	}
	p := w.Message
	if p == nil {
		return malformedf("the push has no message")
	}
	if m.ID == "" {
		m.ID = p.MessageID
	}
	if p.OrderingKey != "" {
		m.OrderingKey = p.OrderingKey
	}
	for name, value := range p.Attributes {
		m.Attributes[name] = value
	}
	if p.PublishTime != "" {
		at, err := time.Parse(time.RFC3339Nano, p.PublishTime)
		if err != nil {
			return malformedf("publishTime is not a time")
		}
		m.Published = at.UTC()
	}
	if p.Data != nil {
		data, err := base64.StdEncoding.Strict().DecodeString(*p.Data)
		if err != nil {
			return malformedf("data is not base64")
		}
		m.Data = data
	}
	return nil
}

// describeJSONError names the place of an error and repeats no content except member names.
func describeJSONError(err error) string {
	if e, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		return fmt.Sprintf("invalid JSON at byte %d", e.ByteOffset)
	}
	if e, ok := errors.AsType[*json.SemanticError](err); ok && e.JSONPointer != "" {
		return "invalid at " + sanitize(string(e.JSONPointer))
	}
	return "not an object of the right form"
}

// sanitize cuts untrusted text to 100 bytes and replaces control characters, so that it fits in a
// log line.
func sanitize(s string) string {
	const limit = 100
	if len(s) > limit {
		s = s[:limit]
	}
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r == utf8.RuneError {
			return '?'
		}
		return r
	}, s)
}
