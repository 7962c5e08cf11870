package inbox

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"melmastoon.ghasi.io/bff-consumer/shared/id"
)

// event is what a message says.
type event struct {
	ID      string
	Subject string
	Payload []byte
	Digest  [sha256.Size]byte // tells two events of one id apart
}

// message is how the platform wraps its events; what else is there is not looked at.
type message struct {
	Envelope struct {
		EventID string `json:"eventId"`
		Subject string `json:"subject"`
	} `json:"envelope"`
	Payload jsontext.Value `json:"payload"`
}

// parse reads the data of a message that should be an event of that subject. Its error is for a person, and repeats
// nothing of what arrived; the event then has its id, if that much could be read.
func parse(subject string, data []byte) (e event, err error) {
	if len(bytes.TrimSpace(data)) == 0 {
		return e, errors.New("the message has no data")
	}
	var m message
	if err := json.Unmarshal(data, &m); err != nil { // refuses double names and broken text, which the schema would not see
		return e, fmt.Errorf("the data is no event: %s", describeJSONError(err))
	}
	if id.Valid(id.Event, m.Envelope.EventID) { // anything else could be anything, and goes to the log
		e.ID = m.Envelope.EventID
	}
	if m.Envelope.Subject != "" && m.Envelope.Subject != subject {
		return e, errors.New("the event is of another subject than its subscription")
	}
	if err := validate(subject, data); err != nil {
		return e, err
	}
	e = event{ID: m.Envelope.EventID, Subject: subject, Payload: m.Payload}
	e.Digest, err = contentDigest(data)
	return e, err
}

func describeJSONError(err error) string {
	if e, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		return fmt.Sprintf("not JSON, at byte %d", e.ByteOffset)
	}
	if e, ok := errors.AsType[*json.SemanticError](err); ok {
		return "wrong at " + sanitize(string(e.JSONPointer), 100) + "/"
	}
	return "not JSON" // unreachable: the decoder has no other errors for bytes in memory
}

// contentDigest is the digest of what an event says, whatever the order of its members. When it was published is not
// part of that: its producer may publish it twice. Whole numbers count as they are written, because large ones would be
// rounded to the same.
func contentDigest(data []byte) ([sha256.Size]byte, error) {
	var whole, envelope map[string]jsontext.Value
	err := json.Unmarshal(data, &whole)
	if err == nil {
		err = json.Unmarshal(whole["envelope"], &envelope)
	}
	if err == nil {
		delete(envelope, "publishedAt")
		whole["envelope"], err = json.Marshal(envelope)
	}
	var canonical jsontext.Value
	if err == nil {
		canonical, err = json.Marshal(whole)
	}
	if err == nil {
		err = canonical.Canonicalize(jsontext.CanonicalizeRawInts(false))
	}
	if err != nil {
		return [sha256.Size]byte{}, fmt.Errorf("the data is no event: %s", describeJSONError(err))
	}
	return sha256.Sum256(canonical), nil
}
