package event

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// schemaFiles holds the JSON Schemas (draft 2020-12) by the path of their address:
// search-executed/v1.json. They describe whole messages as this service writes them and are closed, so
// that nothing leaves unnoticed; a reader should ignore what it does not know, because optional
// properties are added without a new version.
//
//go:embed schemas/*/v*.json
var schemaFiles embed.FS

// compiled has the schema of every subject. Compiling takes milliseconds, so only a process that
// validates pays for it.
var compiled = sync.OnceValues(func() (map[string]*jsonschema.Schema, error) {
	c := jsonschema.NewCompiler()
	c.AssertFormat() // otherwise a date may be any string
	paths, err := fs.Glob(schemaFiles, "schemas/*/v*.json")
	if err != nil {
		return nil, err
	}
	for _, path := range paths {
		data, err := schemaFiles.ReadFile(path)
		if err != nil {
			return nil, err
		}
		doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
		if err != nil {
			return nil, fmt.Errorf("event: read %s: %w", path, err)
		}
		if err := c.AddResource(schemaBase+path[len("schemas/"):], doc); err != nil {
			return nil, fmt.Errorf("event: add %s: %w", path, err)
		}
	}
	all := make(map[string]*jsonschema.Schema, len(catalogue))
	for subject := range catalogue {
		if all[subject], err = c.Compile(SchemaURI(subject)); err != nil {
			return nil, fmt.Errorf("event: compile the schema of %s: %w", subject, err)
		}
	}
	return all, nil
})

// Validate checks the whole message of an event, envelope and payload, against the schema of its
// subject. The error names the places in the message and the rules they break, never the values: a value
// that must not leave in an event must not leave in a log either.
func Validate(e Event) error {
	data, err := e.MarshalJSON()
	if err != nil {
		return err
	}
	return ValidateMessage(e.Subject, data)
}

// ValidateMessage is Validate for a message that is encoded already.
func ValidateMessage(subject string, data []byte) error {
	all, err := compiled()
	if err != nil {
		return err
	}
	schema, ok := all[subject]
	if !ok {
		return fmt.Errorf("event: validate: unknown subject %q", subject)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		return fmt.Errorf("event: validate %s: %w", subject, err)
	}
	var broken *jsonschema.ValidationError
	if err := schema.Validate(doc); errors.As(err, &broken) {
		return fmt.Errorf("event: validate %s: %s", subject, strings.Join(places(broken, nil), ", "))
	}
	return nil
}

// places lists what is broken as "payload.geo.city: pattern".
func places(broken *jsonschema.ValidationError, found []string) []string {
	for _, cause := range broken.Causes {
		found = places(cause, found)
	}
	if len(broken.Causes) == 0 {
		rule := broken.ErrorKind.KeywordPath()
		found = append(found, strings.Join(broken.InstanceLocation, ".")+": "+strings.Join(rule, "."))
	}
	return found
}
