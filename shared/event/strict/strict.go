// Package strict validates events against their JSON Schemas. In a binary that imports it the
// setting VALIDATE_EVENTS makes the outbox validate every event before it is written. Deployed
// functions do not import it, and so start without compiling schemas.
package strict

import (
	"fmt"
	"slices"
	"sync"

	"melmastoon.ghasi.io/bff-consumer/shared/event"
	"melmastoon.ghasi.io/bff-consumer/shared/event/schema"
)

func init() { event.Validator = Validate }

// loadSchemas compiles the schemas of all subjects at the first use, which takes milliseconds.
var loadSchemas = sync.OnceValues(func() (schema.Set, error) { return schema.Compile(event.Schemas(), event.SchemaBase) })

// Validate validates the message of an event, envelope and payload, against the schema of its
// subject. The error names the location and the broken rule, never a value. The first call takes
// milliseconds.
func Validate(e event.Event) error {
	data, err := e.MarshalJSON()
	if err != nil {
		return err
	}
	return ValidateMessage(e.Subject, data)
}

// ValidateMessage is Validate for an encoded message. It returns an error for an unknown subject.
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
