package pubsubpush

import (
	"errors"
	"testing"
)

type jobOptions struct {
	DryRun bool `json:"dryRun"`
}

func TestDecodeOptions_AcceptsObjectOrNoData(t *testing.T) {
	for data, want := range map[string]bool{``: false, `{}`: false, ` {"dryRun":false} `: false, `{"dryRun":true}`: true} {
		m, o := Message{Data: []byte(data)}, jobOptions{}
		if err := m.DecodeOptions(&o); err != nil || o.DryRun != want {
			t.Errorf("%q: %v, %v", data, o.DryRun, err)
		}
	}
}

func TestDecodeOptions_RejectsUnknownAndNullMembers(t *testing.T) {
	for data, why := range map[string]string{
		`null`:                    "the orders are no JSON object",
		` null `:                  "the orders are no JSON object",
		`[]`:                      "the orders are no JSON object",
		`{"dryRun":true`:          "the orders are no JSON object",
		`{"dryRun":null}`:         "the orders are null at /dryRun",
		`{"dryrun":true}`:         "the orders are wrong at /dryrun",
		`{"dryRun":"yes"}`:        "the orders are wrong at /dryRun",
		`{"dryRun":true,"x":1}`:   "the orders are wrong at /x",
		`{"dryRun":true}{}`:       "the orders are no JSON object",
		`{"dryRun":1,"dryRun":0}`: "the orders are no JSON object",
	} {
		m, o := Message{Data: []byte(data)}, jobOptions{}
		wrong, ok := errors.AsType[*MalformedError](m.DecodeOptions(&o))
		if !ok || wrong.Reason != why {
			t.Errorf("%q: %+v, want %q", data, wrong, why)
		}
	}
}
