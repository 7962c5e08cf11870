package strict

import (
	"strings"
	"testing"

	"melmastoon.ghasi.io/bff-consumer/shared/event"
)

func TestValidateMessage_UsesSchemaOfSubject(t *testing.T) {
	for _, subject := range event.Subjects() {
		if err := ValidateMessage(subject, []byte(`{}`)); err == nil || !strings.Contains(err.Error(), "required") {
			t.Errorf("%s: %v", subject, err)
		}
	}
	for name, c := range map[string]struct{ subject, message, reason string }{
		"a subject of nobody": {"melmastoon.bff.consumer.search.executed.v9", `{}`, "unknown subject"},
		"no JSON":             {event.Subjects()[0], `{"envelope"`, "validate " + event.Subjects()[0]},
	} {
		if err := ValidateMessage(c.subject, []byte(c.message)); err == nil || !strings.Contains(err.Error(), c.reason) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestStrict_ImportSetsEventValidator(t *testing.T) {
	if event.Validator == nil || event.Validator(event.Event{Subject: "nobody's"}) == nil {
		t.Error("nobody judges")
	}
}
