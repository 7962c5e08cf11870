package invalidate

import (
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"melmastoon.ghasi.io/bff-consumer/shared/inbox"
	"melmastoon.ghasi.io/bff-consumer/shared/timestamp"
	"melmastoon.ghasi.io/bff-consumer/shared/web"
)

// receive returns a handler for the messages of a subject. The handler applies the effect returned
// by effect for the payload, and answers 200 with the inbox.Report. The answer is 503 when
// Postgres or Redis is unavailable, so that Pub/Sub delivers the message again.
func (p *handlers) receive(subject string, effect func(payload []byte) (inbox.Effect, error)) web.Handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		report, err := p.inbox.Receive(r, subject, effect)
		if err != nil {
			return err
		}
		return web.WriteJSON(w, http.StatusOK, report)
	}
}

// eventTime is a time in a payload.
type eventTime time.Time

// UnmarshalText accepts every form of RFC 3339, also lower-case letters and leap seconds, which
// package time rejects. For any other text it sets the zero time and returns an error without the
// text.
func (m *eventTime) UnmarshalText(text []byte) error {
	at, err := timestamp.Parse(string(text))
	*m = eventTime(at)
	return err
}

// decodePayload decodes a payload accepted by the schema. The error names the place of a value
// rejected by the type, for example a leap second at a wrong time, and repeats no content.
func decodePayload[P any](payload []byte) (p P, err error) {
	if err := json.Unmarshal(payload, &p); err != nil {
		at := "payload"
		if e, ok := errors.AsType[*json.SemanticError](err); ok {
			at += strings.ReplaceAll(string(e.JSONPointer), "/", ".")
		}
		return p, errors.New("the event is invalid: " + at)
	}
	return p, nil
}
