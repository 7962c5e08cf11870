package telemetry

import (
	"slices"
	"strings"
	"time"

	"melmastoon.ghasi.io/bff-consumer/shared/id"
	"melmastoon.ghasi.io/bff-consumer/shared/problem"
)

// validator collects the faults of reports. prefix is the path of the current report.
type validator struct {
	prefix string
	fields []problem.FieldError
}

func (f *validator) add(field, code, detail string) {
	f.fields = append(f.fields, problem.FieldError{Field: f.prefix + field, Code: code, Detail: detail})
}

// id validates an id. An optional id may be absent.
func (f *validator) id(field string, prefix id.Prefix, s string, required bool) {
	switch {
	case s == "" && !required:
	case s == "":
		f.add(field, "required", "An id is required.")
	case !id.Valid(prefix, s):
		f.add(field, "malformed", "Must be an id, "+string(prefix)+"….")
	}
}

// oneOf validates a required word of a set.
func (f *validator) oneOf(field, s string, set ...string) {
	detail := "Must be one of " + strings.Join(set, ", ") + "."
	switch {
	case s == "":
		f.add(field, "required", detail)
	case !slices.Contains(set, s):
		f.add(field, "not-supported", detail)
	}
}

// timestamp validates an optional RFC 3339 time of at most 40 characters.
func (f *validator) timestamp(field, s string) {
	if s == "" {
		return
	}
	if _, err := time.Parse(time.RFC3339Nano, s); err != nil || len(s) > 40 {
		f.add(field, "malformed", "Must be a time such as 2026-04-23T09:14:22.041Z.")
	}
}

// position validates an optional position from 1 to 10,000.
func (f *validator) position(field string, n *int) {
	if n != nil && (*n < 1 || *n > maxPosition) {
		f.add(field, "out-of-range", "Must be from 1 to 10000.")
	}
}
