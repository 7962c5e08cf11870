package telemetry

import (
	"slices"
	"strings"
	"time"

	"melmastoon.ghasi.io/bff-consumer/shared/id"
	"melmastoon.ghasi.io/bff-consumer/shared/problem"
)

// validator collects what is wrong, under the path of the report that is looked at.
type validator struct {
	prefix string
	fields []problem.FieldError
}

func (f *validator) add(field, code, detail string) {
	f.fields = append(f.fields, problem.FieldError{Field: f.prefix + field, Code: code, Detail: detail})
}

// id checks an id, which may be left out unless it is needed.
func (f *validator) id(field string, prefix id.Prefix, s string, needed bool) {
	switch {
	case s == "" && !needed:
	case s == "":
		f.add(field, "required", "Is needed.")
	case !id.Valid(prefix, s):
		f.add(field, "malformed", "Must be an id, "+string(prefix)+"….")
	}
}

// oneOf checks a word of a set, which must be there.
func (f *validator) oneOf(field, s string, set ...string) {
	detail := "Must be one of " + strings.Join(set, ", ") + "."
	switch {
	case s == "":
		f.add(field, "required", detail)
	case !slices.Contains(set, s):
		f.add(field, "not-supported", detail)
	}
}

// timestamp checks a time that may be left out.
func (f *validator) timestamp(field, s string) {
	if s == "" {
		return
	}
	if _, err := time.Parse(time.RFC3339Nano, s); err != nil || len(s) > 40 {
		f.add(field, "malformed", "Must be a time such as 2026-04-23T09:14:22.041Z.")
	}
}

// position checks a position that may be left out.
func (f *validator) position(field string, n *int) {
	if n != nil && (*n < 1 || *n > maxPosition) {
		f.add(field, "out-of-range", "Must be from 1 to 10000.")
	}
}
