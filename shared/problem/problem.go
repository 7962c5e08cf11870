// Package problem owns the error catalogue and the one writer that turns an error into an answer (RFC 9457).
// It never tells a guest more than the catalogue and what the code that failed wrote for the guest.
package problem

import (
	"context"
	"errors"
	"maps"
	"strings"
	"time"
)

// FieldError says what is wrong with one part of a request. Detail is for the guest and never repeats what was sent.
type FieldError struct {
	Field  string `json:"field"` // dotted path: "dates.checkIn", "filters.amenities.3"; "body" for the whole
	Code   string `json:"code"`  // one lower-case word or two: "required", "too-far"
	Detail string `json:"detail"`
}

// UnknownField is the code of a field we have no name for.
const UnknownField = "unknown"

// Error makes a Field an error, so that a type that decodes itself (a date) can say what is wrong; the decoder adds
// where. The name of an unknown field is the client's invention and stays out of the log.
func (f FieldError) Error() string {
	if f.Code == UnknownField {
		return "a field unknown"
	}
	return f.Field + " " + f.Code
}

// FieldErrors collects what is wrong with a request.
type FieldErrors []FieldError

// Add notes that a field is wrong.
func (f *FieldErrors) Add(field, code, detail string) {
	*f = append(*f, FieldError{Field: field, Code: code, Detail: detail})
}

// Problem is an error with its answer: the kind, words for the guest, and the cause, which is for the log alone.
type Problem struct {
	Kind       Kind
	Detail     string
	Fields     []FieldError
	RetryAfter time.Duration  // 0: not known
	Extensions map[string]any // extension members of RFC 9457; nil for nearly all
	cause      error
}

// New returns a problem. The detail is for the guest; the cause, which may be nil, is for the log.
func New(k Kind, detail string, cause error) *Problem {
	return &Problem{Kind: k, Detail: detail, cause: cause}
}

// Invalid returns a ValidationFailed problem that names the fields.
func Invalid(fields ...FieldError) *Problem {
	return &Problem{Kind: ValidationFailed, Detail: "See errors for the fields that need attention.", Fields: fields}
}

// FromError returns the problem in err's chain. A passed deadline is UpstreamBudgetExceeded, anything else Internal; nil is
// nil.
func FromError(err error) *Problem {
	if err == nil {
		return nil
	}
	var p *Problem
	if errors.As(err, &p) {
		return p
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return New(UpstreamBudgetExceeded, "The answer was not ready in time. Please try again.", err).WithRetryAfter(time.Second)
	}
	return New(Internal, "The request could not be completed.", err)
}

// WithRetryAfter returns a copy that tells the client to wait that long; it is rounded up to whole seconds on the wire.
func (p *Problem) WithRetryAfter(d time.Duration) *Problem {
	q := *p
	q.RetryAfter = d
	return &q
}

// WithExtension returns a copy with an extension member, for instance what solving a challenge needs.
func (p *Problem) WithExtension(name string, value any) *Problem {
	q := *p
	q.Extensions = maps.Clone(p.Extensions)
	if q.Extensions == nil {
		q.Extensions = map[string]any{}
	}
	q.Extensions[name] = value
	return &q
}

// Error is for the log: the code, the fields by name and the cause, never a value that was sent.
func (p *Problem) Error() string {
	var b strings.Builder
	b.WriteString(p.Kind.Code)
	for i, f := range p.Fields {
		if i == 8 { // the record stays short however wrong the request is
			b.WriteString(" …")
			break
		}
		b.WriteString(" " + f.Error())
	}
	if p.cause != nil {
		b.WriteString(": " + p.cause.Error())
	}
	return b.String()
}

// Unwrap returns the cause.
func (p *Problem) Unwrap() error { return p.cause }
