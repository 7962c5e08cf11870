package pubsubpush

import (
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// DecodeOptions decodes the options of a job's tick, a JSON object, into a pointer to a struct.
// Without data the struct stays unchanged. DecodeOptions refuses unknown members, null as the
// object or as a member's value, and duplicate names: the sender may have misspelled dryRun, and an
// ignored option would start a real run. The error is always a *MalformedError; the struct may be
// half filled then. DecodeOptions uses CPU and memory only.
func (m *Message) DecodeOptions(into any) error {
	if len(m.Data) == 0 {
		return nil
	}
	var members map[string]jsontext.Value
	if err := json.Unmarshal(m.Data, &members); err != nil || members == nil {
		return malformedf("the options are not a JSON object")
	}
	for name, value := range members {
		if value.Kind() == 'n' {
			return malformedf("the options are null at /%s", sanitize(name))
		}
	}
	if err := json.Unmarshal(m.Data, into, json.RejectUnknownMembers(true)); err != nil {
		return malformedf("the options are %s", describeJSONError(err))
	}
	return nil
}
