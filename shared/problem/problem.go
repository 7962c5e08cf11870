// Package problem owns the error catalogue and the only function that turns an error into a
// response (RFC 9457). A response holds the catalogue's texts and the detail written for the guest,
// never the cause of the error.
package problem

import (
	"context"
	"errors"
	"maps"
	"strings"
	"time"
)

// FieldError describes an invalid field of a request. Detail is for the guest and never repeats the
// value.
type FieldError struct {
	Field  string `json:"field"` // dotted path: "dates.checkIn", "filters.amenities.3"; "body" for the whole
	Code   string `json:"code"`  // a lower-case word or two: "required", "too-far"
	Detail string `json:"detail"`
}

// UnknownField is the code of a field that the request type does not have.
const UnknownField = "unknown"

// Error makes FieldError an error, so that a type with its own decoder, such as a date, can report
// a wrong value; the decoder adds the field's path. The text is the field and the code, for the
// log. The name of an unknown field comes from the client and stays out of the log.
func (f FieldError) Error() string {
	if f.Code == UnknownField {
		return "a field unknown"
	}
	return f.Field + " " + f.Code
}

// FieldErrors collects the invalid fields of a request.
type FieldErrors []FieldError

// Add appends an invalid field. Not safe for concurrent use. It never fails.
func (f *FieldErrors) Add(field, code, detail string) {
	*f = append(*f, FieldError{Field: field, Code: code, Detail: detail})
}

// Problem is an error with its response: the kind and the detail for the guest. The cause is for
// the log only.
type Problem struct {
	Kind       Kind
	Detail     string
	Fields     []FieldError
	RetryAfter time.Duration  // 0: not known
	Extensions map[string]any // extension members of RFC 9457; usually nil
	cause      error
}

// New returns a problem, never nil. The detail is for the guest; the cause, which may be nil, is
// for the log. CPU only.
func New(k Kind, detail string, cause error) *Problem {
	return &Problem{Kind: k, Detail: detail, cause: cause}
}

// Invalid returns a ValidationFailed problem that names the fields. It never returns nil, also
// without fields, and keeps the slice of fields.
func Invalid(fields ...FieldError) *Problem {
	return &Problem{Kind: ValidationFailed, Detail: "See errors for the fields that need attention.", Fields: fields}
}

// FromError returns the first problem in err's chain, itself and not a copy. Without a problem, an
// exceeded deadline becomes UpstreamBudgetExceeded (retry after 1 s) and any other error Internal,
// a cancelled context included. FromError(nil) is nil, and so is the result for a nil *Problem in
// an error. CPU only.
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

// WithRetryAfter returns a copy that tells the client to wait for d; Write rounds up to whole
// seconds. With d of 0 or less the response names no time. The copy shares fields and extensions
// with p. p must not be nil. It never fails.
func (p *Problem) WithRetryAfter(d time.Duration) *Problem {
	q := *p
	q.RetryAfter = d
	return &q
}

// WithExtension returns a copy with an extension member, such as the parameters of a challenge, in
// place of a member of the same name. p stays as it is and must not be nil. WithExtension checks
// nothing: a value without a JSON form, or the name of a standard member such as "status", makes
// Write drop the detail, the field errors and all extensions.
func (p *Problem) WithExtension(name string, value any) *Problem {
	q := *p
	q.Extensions = maps.Clone(p.Extensions)
	if q.Extensions == nil {
		q.Extensions = map[string]any{}
	}
	q.Extensions[name] = value
	return &q
}

// Error returns the text for the log: the code, the names and codes of up to eight fields and the
// cause. Error adds no value of the request; the text of the cause is included whole, so causes
// must not quote values.
func (p *Problem) Error() string {
	var b strings.Builder
	b.WriteString(p.Kind.Code)
	for i, f := range p.Fields {
		if i == 8 { // keep the log record short
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

// Unwrap returns the cause, or nil without one.
func (p *Problem) Unwrap() error { return p.cause }
