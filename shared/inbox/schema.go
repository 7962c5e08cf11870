package inbox

import (
	"bytes"
	"cmp"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// schemaFiles holds the JSON Schemas (draft 2020-12) of consumed events. The schemas require the
// members used by this service and allow any other member.
//
//go:embed schemas/*.json
var schemaFiles embed.FS

const schemaBase = "https://schemas.melmastoon.ghasi.io/bff-consumer/consumed/"

// loadSchemas compiles all schemas once per process, in some milliseconds. The result is keyed by
// subject.
var loadSchemas = sync.OnceValues(func() (map[string]*jsonschema.Schema, error) {
	c := jsonschema.NewCompiler()
	c.AssertFormat() // without this, format is not checked and a date may be any string
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
		if subject == "envelope" { // referenced by every schema
			continue
		}
		if all[subject], err = c.Compile(schemaBase + subject + ".json"); err != nil {
			return nil, fmt.Errorf("inbox: compile %s: %w", file, err)
		}
	}
	return all, nil
})

// validate checks the data of a message against the schema of subject. The error names places and
// the violated rules, and repeats no content.
func validate(subject string, data []byte) error {
	all, err := loadSchemas()
	if err != nil {
		return err
	}
	schema := all[subject]
	if schema == nil {
		return fmt.Errorf("%s is not a consumed subject", sanitize(subject, 100))
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		return errors.New("the data is not an event: invalid JSON")
	}
	if invalid, ok := errors.AsType[*jsonschema.ValidationError](schema.Validate(doc)); ok {
		return fmt.Errorf("the event is invalid: %s", strings.Join(violations(invalid, nil), ", "))
	}
	return nil
}

// violations appends the violated rules to found, in the form "payload.tenantId: pattern".
func violations(invalid *jsonschema.ValidationError, found []string) []string {
	for _, cause := range invalid.Causes {
		found = violations(cause, found)
	}
	if len(invalid.Causes) == 0 {
		place := cmp.Or(strings.Join(invalid.InstanceLocation, "."), "the message")
		found = append(found, place+": "+strings.Join(invalid.ErrorKind.KeywordPath(), "."))
	}
	return found
}
