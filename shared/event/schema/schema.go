// Package schema owns how JSON Schemas (draft 2020-12) are read and applied. It knows no subject. Linking it costs the start of a process
// milliseconds, because the library reads every draft there is, so package event does not import it.
package schema

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Set is schemas by their address. It is safe for concurrent use.
type Set map[string]*jsonschema.Schema

// Compile reads the schemas of a directory, <name>/v<n>.json each; their addresses begin with base.
func Compile(files fs.FS, base string) (Set, error) {
	c := jsonschema.NewCompiler()
	c.AssertFormat() // otherwise a date may be any string
	paths, err := fs.Glob(files, "*/v*.json")
	if err != nil {
		return nil, err
	}
	for _, path := range paths {
		data, err := fs.ReadFile(files, path)
		if err != nil {
			return nil, err
		}
		doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
		if err != nil {
			return nil, fmt.Errorf("schema: read %s: %w", path, err)
		}
		if err := c.AddResource(base+path, doc); err != nil {
			return nil, fmt.Errorf("schema: add %s: %w", path, err)
		}
	}
	all := make(Set, len(paths))
	for _, path := range paths {
		if all[base+path], err = c.Compile(base + path); err != nil {
			return nil, fmt.Errorf("schema: compile %s: %w", path, err)
		}
	}
	return all, nil
}

// Validate holds a document against the schema of an address. The error names the places in the document and the rules they break, never
// the values: a value that must not leave in an event must not leave in a log either.
func (s Set) Validate(address string, data []byte) error {
	schema, ok := s[address]
	if !ok {
		return fmt.Errorf("there is no schema %s", address)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		return err
	}
	var broken *jsonschema.ValidationError
	if err := schema.Validate(doc); errors.As(err, &broken) {
		return errors.New(strings.Join(violations(broken, nil), ", "))
	}
	return nil
}

// violations lists what is broken as "payload.geo.city: pattern".
func violations(broken *jsonschema.ValidationError, found []string) []string {
	for _, cause := range broken.Causes {
		found = violations(cause, found)
	}
	if len(broken.Causes) == 0 {
		rule := broken.ErrorKind.KeywordPath()
		found = append(found, strings.Join(broken.InstanceLocation, ".")+": "+strings.Join(rule, "."))
	}
	return found
}
