// Package strict validates events against their JSON Schemas. In a binary that imports strict, the
// setting VALIDATE_EVENTS makes the outbox validate every event before writing the event. Deployed
// functions do not import strict, and so start without compiling schemas.
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
// subject. Validate does no I/O. The first call of a process compiles the schemas of all subjects,
// which takes milliseconds; concurrent callers wait, and every later call returns an error of this
// compilation. The errors are an event without a JSON form, an unknown subject, and broken rules,
// each named with the location and without a value. Safe for concurrent use.
func Validate(e event.Event) error {
	data, err := e.MarshalJSON()
	if err != nil {
		return err
	}
	return ValidateMessage(e.Subject, data)
}

// ValidateMessage is Validate for an encoded message, with the same cost at the first call. The
// errors are a subject outside the catalogue, found before compiling, malformed JSON, and broken
// rules of the subject's schema.
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
