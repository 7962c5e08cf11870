// Package schema compiles and applies JSON Schemas (draft 2020-12). The package knows no subject.
// Package event does not import schema, because linking adds milliseconds to a start: the library
// compiles the meta-schemas of every draft.
package schema

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Set maps addresses to compiled schemas. Safe for concurrent use while nobody changes the map.
type Set map[string]*jsonschema.Schema

// Compile reads and compiles the files <name>/v<n>.json. The address of a schema is base and its
// path. Compile takes milliseconds of CPU, reads only files, and uses no network. The first
// unreadable file or invalid schema gives nil and an error, also a reference to an address outside
// files (except a file: reference, which is read from disk). Without files the Set is empty.
func Compile(files fs.FS, base string) (Set, error) {
	c := jsonschema.NewCompiler()
	c.AssertFormat() // without it any string is a valid date
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

// Validate validates a JSON document against the schema of an address, with CPU and memory only.
// The errors are an address without a schema, malformed JSON, and a document with broken rules. The
// error names locations and all broken rules, never values: a value forbidden in an event is
// forbidden in a log too. A location contains names of members, and the error for malformed JSON
// may contain a single character.
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

// violations appends each broken rule in the form "payload.geo.city: pattern".
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
