package event

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"melmastoon.ghasi.io/bff-consumer/shared/timestamp"
)

// envelopeOrder is the order of fields in a published envelope. Postgres's jsonb does not keep the
// order in which the outbox row was written.
var envelopeOrder = []string{
	"eventId", "subject", "version", "occurredAt", "publishedAt", "producer", "producerInstance", "tenantId", "userId", "sessionId",
	"requestId", "traceId", "causationId", "correlationId", "schemaUri", "retentionClass", "samplingRate",
}

// WithPublishedAt adds publishedAt, or replaces it, in the envelope of a stored message and
// restores the order of fields. Other fields stay as they are, unknown fields too. It returns a new
// slice and does not change message; it does no I/O and does not check the schema. It returns nil
// and an error, without any content of the message, if message is not a JSON object with an
// envelope of event eventID and an object as payload.
func WithPublishedAt(message []byte, eventID string, at time.Time) ([]byte, error) {
	var whole, envelope map[string]jsontext.Value
	if json.Unmarshal(message, &whole) != nil || whole == nil {
		return nil, errors.New("event: publish: the message is not a JSON object")
	}
	if json.Unmarshal(whole["envelope"], &envelope) != nil || envelope == nil {
		return nil, errors.New("event: publish: the message has no envelope")
	}
	if whole["payload"].Kind() != '{' {
		return nil, errors.New("event: publish: the message has no payload")
	}
	var found string
	if json.Unmarshal(envelope["eventId"], &found) != nil || found != eventID {
		return nil, errors.New("event: publish: the envelope is of another event")
	}
	envelope["publishedAt"] = at.UTC().AppendFormat(nil, `"`+timestamp.Layout+`"`)
	inner, err := appendObject(nil, envelope, envelopeOrder)
	if err != nil {
		return nil, fmt.Errorf("event: publish: %w", err)
	}
	whole["envelope"] = inner
	return appendObject(make([]byte, 0, len(message)+64), whole, []string{"envelope", "payload"})
}

// appendObject appends a JSON object: first the members in order, then the other members by name.
func appendObject(to []byte, members map[string]jsontext.Value, order []string) (_ []byte, err error) {
	names := slices.DeleteFunc(slices.Clone(order), func(name string) bool { return members[name] == nil })
	for _, name := range slices.Sorted(maps.Keys(members)) {
		if !slices.Contains(order, name) {
			names = append(names, name)
		}
	}
	to = append(to, '{')
	for i, name := range names {
		if i > 0 {
			to = append(to, ',')
		}
		if to, err = jsontext.AppendQuote(to, name); err != nil {
			return nil, err // unreachable: the name was read from JSON
		}
		to = append(to, ':')
		to = append(to, members[name]...)
	}
	return append(to, '}'), nil
}
