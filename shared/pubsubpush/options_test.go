package pubsubpush

import (
	"errors"
	"testing"
)

type jobOptions struct {
	DryRun bool `json:"dryRun"`
}

func TestDecodeOptions_AcceptsObjectOrNoData(t *testing.T) {
	t.Parallel()
	for data, want := range map[string]bool{``: false, `{}`: false, ` {"dryRun":false} `: false, `{"dryRun":true}`: true} {
		m, o := Message{Data: []byte(data)}, jobOptions{}
		if err := m.DecodeOptions(&o); err != nil || o.DryRun != want {
			t.Errorf("%q: got dryRun %t, %v, want %t", data, o.DryRun, err, want)
		}
	}
}

func TestDecodeOptions_RejectsUnknownAndNullMembers(t *testing.T) {
	t.Parallel()
	for data, want := range map[string]string{
		`null`:                    "the options are not a JSON object",
		` null `:                  "the options are not a JSON object",
		`[]`:                      "the options are not a JSON object",
		`{"dryRun":true`:          "the options are not a JSON object",
		`{"dryRun":null}`:         "the options are null at /dryRun",
		`{"dryrun":true}`:         "the options are invalid at /dryrun",
		`{"dryRun":"yes"}`:        "the options are invalid at /dryRun",
		`{"dryRun":true,"x":1}`:   "the options are invalid at /x",
		`{"dryRun":true}{}`:       "the options are not a JSON object",
		`{"dryRun":1,"dryRun":0}`: "the options are not a JSON object",
	} {
		m, o := Message{Data: []byte(data)}, jobOptions{}
		wrong, ok := errors.AsType[*MalformedError](m.DecodeOptions(&o))
		if !ok || wrong.Reason != want {
			t.Errorf("%q: got %+v, want %q", data, wrong, want)
		}
	}
}
