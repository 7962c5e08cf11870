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

// schemaFiles holds the JSON Schemas (draft 2020-12) of what we are told: what of it we need, open to whatever else
// its producers say.
//
//go:embed schemas/*.json
var schemaFiles embed.FS

const schemaBase = "https://schemas.melmastoon.ghasi.io/bff-consumer/consumed/"

var loadSchemas = sync.OnceValues(func() (map[string]*jsonschema.Schema, error) {
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

// validate holds the data of a message against the schema of a subject. Its error names places and the rules they
// break, never what is there.
func validate(subject string, data []byte) error {
	all, err := loadSchemas()
	if err != nil {
		return err
	}
	schema := all[subject]
	if schema == nil {
		return fmt.Errorf("%s is no subject that is listened to", sanitize(subject, 100))
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		return errors.New("the data is no event: not JSON")
	}
	if broken, ok := errors.AsType[*jsonschema.ValidationError](schema.Validate(doc)); ok {
		return fmt.Errorf("the event is wrong: %s", strings.Join(violations(broken, nil), ", "))
	}
	return nil
}

// violations lists what is broken as "payload.tenantId: pattern".
func violations(broken *jsonschema.ValidationError, found []string) []string {
	for _, cause := range broken.Causes {
		found = violations(cause, found)
	}
	if len(broken.Causes) == 0 {
		place := cmp.Or(strings.Join(broken.InstanceLocation, "."), "the message")
		found = append(found, place+": "+strings.Join(broken.ErrorKind.KeywordPath(), "."))
	}
	return found
}
