// Package strict owns the judgement of events by their schemas. A binary that imports it can be told to hold every event against its
// schema before it is written (setup.Environment.ValidateEvents); those that are deployed do not, and start without the schemas.
package strict

import (
	"fmt"
	"slices"
	"sync"

	"melmastoon.ghasi.io/bff-consumer/shared/event"
	"melmastoon.ghasi.io/bff-consumer/shared/event/schema"
)

func init() { event.Validator = Validate }

// loadSchemas has the schema of every subject. Compiling takes milliseconds, so only a process that validates pays for it.
var loadSchemas = sync.OnceValues(func() (schema.Set, error) { return schema.Compile(event.Schemas(), event.SchemaBase) })

// Validate checks the whole message of an event, envelope and payload, against the schema of its subject. The error names the places in
// the message and the rules they break, never the values.
func Validate(e event.Event) error {
	data, err := e.MarshalJSON()
	if err != nil {
		return err
	}
	return ValidateMessage(e.Subject, data)
}

// ValidateMessage is Validate for a message that is encoded already.
func ValidateMessage(subject string, data []byte) error {
	if !slices.Contains(event.Subjects(), subject) {
		return fmt.Errorf("event: validate: unknown subject %q", subject)
	}
	all, err := loadSchemas()
	if err == nil {
		err = all.Validate(event.SchemaURI(subject), data)
	}
	if err != nil {
		return fmt.Errorf("event: validate %s: %w", subject, err)
	}
	return nil
}
