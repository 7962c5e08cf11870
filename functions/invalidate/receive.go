package invalidate

import (
	"errors"
	"net/http"
	"strings"

	"github.com/go-json-experiment/json"

	"melmastoon.ghasi.io/bff-consumer/shared/inbox"
	"melmastoon.ghasi.io/bff-consumer/shared/web"
)

// receive answers with what became of each message on the subject.
func (p *parts) receive(subject string, read func(payload []byte) (inbox.Work, error)) web.Handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		report, err := p.inbox.Receive(r, subject, read)
		if err != nil {
			return err
		}
		return web.WriteJSON(w, http.StatusOK, report)
	}
}

// decode reads a payload that has the form its schema asks for. What is wrong all the same is a time the calendar
// has not.
func decode[P any](payload []byte) (p P, err error) {
	if err := json.Unmarshal(payload, &p); err != nil {
		at := "payload"
		if e, ok := errors.AsType[*json.SemanticError](err); ok {
			at += strings.ReplaceAll(string(e.JSONPointer), "/", ".")
		}
		return p, errors.New("the event is wrong: " + at)
	}
	return p, nil
}
