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

// receive answers with what became of each message on the subject.
func (p *handlers) receive(subject string, read func(payload []byte) (inbox.Effect, error)) web.Handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		report, err := p.inbox.Receive(r, subject, read)
		if err != nil {
			return err
		}
		return web.WriteJSON(w, http.StatusOK, report)
	}
}

// eventTime is a time in a payload.
type eventTime time.Time

// UnmarshalText reads the forms that RFC 3339 has and package time has not, too.
func (m *eventTime) UnmarshalText(text []byte) error {
	at, err := timestamp.Parse(string(text))
	*m = eventTime(at)
	return err
}

// decodePayload reads a payload that has the form its schema asks for.
func decodePayload[P any](payload []byte) (p P, err error) {
	if err := json.Unmarshal(payload, &p); err != nil {
		at := "payload"
		if e, ok := errors.AsType[*json.SemanticError](err); ok {
			at += strings.ReplaceAll(string(e.JSONPointer), "/", ".")
		}
		return p, errors.New("the event is wrong: " + at)
	}
	return p, nil
}
