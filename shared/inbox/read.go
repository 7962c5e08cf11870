package inbox

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"sync"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// event is what a message says.
type event struct {
	ID      string
	Subject string
	Payload []byte
	Digest  digest
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
		return e, fmt.Errorf("the data is no event: %s", explain(err))
	}
	if m.Envelope.Subject != "" && m.Envelope.Subject != subject {
		return e, errors.New("the event is of another subject than its subscription")
	}
	if err := Check(subject, data); err != nil {
		return e, err
	}
	e = event{ID: m.Envelope.EventID, Subject: subject, Payload: m.Payload}
	e.Digest, err = fingerprint(data)
	return e, err
}

func explain(err error) string {
	if e, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		return fmt.Sprintf("not JSON, at byte %d", e.ByteOffset)
	}
	if e, ok := errors.AsType[*json.SemanticError](err); ok {
		return "wrong at " + text(string(e.JSONPointer), 100) + "/"
	}
	return "not JSON" // unreachable: the decoder has no other errors for bytes in memory
}

// fingerprint is the digest of what an event says, whatever the order of its members. When it was published is not
// part of that: its producer may publish it twice. Whole numbers count as they are written, because large ones would be
// rounded to the same.
func fingerprint(data []byte) (digest, error) {
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
		return digest{}, fmt.Errorf("the data is no event: %s", explain(err))
	}
	return sha256.Sum256(canonical), nil
}

// schemaFiles holds the JSON Schemas (draft 2020-12) of what we are told: what of it we need, open to whatever else
// its producers say.
//
//go:embed schemas/*.json
var schemaFiles embed.FS

const schemaBase = "https://schemas.melmastoon.ghasi.io/bff-consumer/consumed/"

var compiled = sync.OnceValues(func() (map[string]*jsonschema.Schema, error) {
	c := jsonschema.NewCompiler()
	c.AssertFormat() // otherwise a date may be any string
	files, err := fs.Glob(schemaFiles, "schemas/*.json")
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		content, err := schemaFiles.ReadFile(file)
		if err != nil {
			return nil, err
		}
		doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(content))
		if err != nil {
			return nil, fmt.Errorf("inbox: read %s: %w", file, err)
		}
		if err := c.AddResource(schemaBase+strings.TrimPrefix(file, "schemas/"), doc); err != nil {
			return nil, fmt.Errorf("inbox: add %s: %w", file, err)
		}
	}
	all := map[string]*jsonschema.Schema{}
	for _, file := range files {
		subject := strings.TrimSuffix(strings.TrimPrefix(file, "schemas/"), ".json")
		if subject == "envelope" { // a part of each
			continue
		}
		if all[subject], err = c.Compile(schemaBase + subject + ".json"); err != nil {
			return nil, fmt.Errorf("inbox: compile %s: %w", file, err)
		}
	}
	return all, nil
})

// Check holds the data of a message against the schema of a subject. Its error names places and the rules they
// break, never what is there.
func Check(subject string, data []byte) error {
	all, err := compiled()
	if err != nil {
		return err
	}
	schema := all[subject]
	if schema == nil {
		return fmt.Errorf("%s is no subject that is listened to", text(subject, 100))
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		return errors.New("the data is no event: not JSON")
	}
	if broken, ok := errors.AsType[*jsonschema.ValidationError](schema.Validate(doc)); ok {
		return fmt.Errorf("the event is wrong: %s", strings.Join(places(broken, nil), ", "))
	}
	return nil
}

// places lists what is broken as "payload.tenantId: pattern".
func places(broken *jsonschema.ValidationError, found []string) []string {
	for _, cause := range broken.Causes {
		found = places(cause, found)
	}
	if len(broken.Causes) == 0 {
		place := cmp.Or(strings.Join(broken.InstanceLocation, "."), "the message")
		found = append(found, place+": "+strings.Join(broken.ErrorKind.KeywordPath(), "."))
	}
	return found
}
