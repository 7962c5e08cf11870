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

// event is a validated event.
type event struct {
	ID      string
	Subject string
	Payload []byte
	Digest  [sha256.Size]byte // of the content, to compare events with the same id
}

// message is the part of a platform event that the inbox reads.
type message struct {
	Envelope struct {
		EventID string `json:"eventId"`
		Subject string `json:"subject"`
	} `json:"envelope"`
	Payload jsontext.Value `json:"payload"`
}

// parse decodes and validates the data of an event of subject. On an error the event has only its
// id, if the id is readable and valid. The error is a reason for operators and repeats no content
// of the message.
func parse(subject string, data []byte) (e event, err error) {
	if len(bytes.TrimSpace(data)) == 0 {
		return e, errors.New("the message has no data")
	}
	var m message
	// refuses duplicate names and invalid UTF-8, unlike the schema
	if err := json.Unmarshal(data, &m); err != nil {
		return e, fmt.Errorf("the data is not an event: %s", describeJSONError(err))
	}
	// another text could contain personal data, and the id is logged
	if id.Valid(id.Event, m.Envelope.EventID) {
		e.ID = m.Envelope.EventID
	}
	if m.Envelope.Subject != "" && m.Envelope.Subject != subject {
		return e, errors.New("the event has another subject than the subscription")
	}
	if err := validate(subject, data); err != nil {
		return e, err
	}
	e = event{ID: m.Envelope.EventID, Subject: subject, Payload: m.Payload}
	e.Digest, err = contentDigest(data)
	return e, err
}

// describeJSONError names the place of an error and repeats no content except member names.
func describeJSONError(err error) string {
	if e, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		return fmt.Sprintf("invalid JSON at byte %d", e.ByteOffset)
	}
	if e, ok := errors.AsType[*json.SemanticError](err); ok {
		return "invalid at " + sanitize(string(e.JSONPointer), 100) + "/"
	}
	return "invalid JSON" // unreachable: the decoder has no other errors for bytes in memory
}

// contentDigest returns a digest of the event's content, independent of the order of members and of
// white space. publishedAt is left out: a producer may publish an event twice. Integers are
// compared as written, because rounding would make large integers equal.
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
		return [sha256.Size]byte{}, fmt.Errorf("the data is not an event: %s", describeJSONError(err))
	}
	return sha256.Sum256(canonical), nil
}
