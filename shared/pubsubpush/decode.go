// Package push owns how something arrives from Pub/Sub: as a wrapped push, or as a CloudEvent in binary or
// structured mode. It never looks at what the message says.
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

// maxBody is how much of a request is read, in bytes. Events and orders are a hundredth of it.
const maxBody = 1 << 20

// Message is something that arrived.
type Message struct {
	ID          string            // of the CloudEvent, or the broker's message id
	Data        []byte            // the event: JSON {"envelope","payload"}, or a job's orders; nil when there is none
	Attributes  map[string]string // never nil
	OrderingKey string
	// Subscription is the name as the broker has it, "projects/p/subscriptions/s"; empty when not told.
	Subscription string
	Attempt      int       // which delivery this is, 1 when not told
	Published    time.Time // zero when not told
	Body         []byte    // of the request as it arrived, at most 1 MiB of it
}

// MalformedError says why what arrived cannot be read. Delivering it again would change nothing.
type MalformedError struct{ Reason string }

func (m *MalformedError) Error() string { return "push: " + m.Reason }

func malformedf(format string, args ...any) error {
	return &MalformedError{fmt.Sprintf(format, args...)}
}

// Decode reads a message from a request. When the error is a *Malformed, the message has what could be read all the
// same, its Body always. Any other error means that the request broke off.
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

// pushBody is the body of a push. Pub/Sub also sends messageId and publishTime in snake case; what is not known is
// not looked at.
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

// unwrap reads the body of a push into m, also when some of it is wrong.
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
			return malformedf("publishTime is no time")
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

// describeJSONError says what is wrong with JSON without repeating it.
func describeJSONError(err error) string {
	if e, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		return fmt.Sprintf("not JSON, at byte %d", e.ByteOffset)
	}
	if e, ok := errors.AsType[*json.SemanticError](err); ok && e.JSONPointer != "" {
		return "wrong at " + sanitize(string(e.JSONPointer))
	}
	return "not what a push is"
}

// sanitize keeps a stranger's text short and in one line.
func sanitize(s string) string {
	const most = 100
	if len(s) > most {
		s = s[:most]
	}
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r == utf8.RuneError {
			return '?'
		}
		return r
	}, s)
}
