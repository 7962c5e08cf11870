package event

import (
	"fmt"
	"sync"

	"melmastoon.ghasi.io/bff-consumer/shared/event/schema"
)

var loadSchemas = sync.OnceValues(func() (schema.Set, error) { return schema.Compile(Schemas(), SchemaBase) })

// Validate is strict.Validate, which tests inside this package cannot import.
func Validate(e Event) error {
	data, err := e.MarshalJSON()
	if err != nil {
		return err
	}
	return ValidateMessage(e.Subject, data)
}

func ValidateMessage(subject string, data []byte) error {
	all, err := loadSchemas()
	if err == nil {
		err = all.Validate(SchemaURI(subject), data)
	}
	if err != nil {
		return fmt.Errorf("event: validate %s: %w", subject, err)
	}
	return nil
}
