package pubsubpush

import (
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// DecodeOptions reads the data of a job's tick into a pointer to a struct: without data it stays as it is, otherwise they are a
// JSON object. A member that is not known, and null, would be an order that is not followed: whoever sends it may have
// meant a dry run. Its error is a *Malformed.
func (m *Message) DecodeOptions(into any) error {
	if len(m.Data) == 0 {
		return nil
	}
	var members map[string]jsontext.Value
	if err := json.Unmarshal(m.Data, &members); err != nil || members == nil {
		return malformedf("the orders are no JSON object")
	}
	for name, value := range members {
		if value.Kind() == 'n' {
			return malformedf("the orders are null at /%s", sanitize(name))
		}
	}
	if err := json.Unmarshal(m.Data, into, json.RejectUnknownMembers(true)); err != nil {
		return malformedf("the orders are %s", describeJSONError(err))
	}
	return nil
}
