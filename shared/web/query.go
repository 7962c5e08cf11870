package web

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	"melmastoon.ghasi.io/bff-consumer/shared/problem"
)

// RejectQuery returns a ValidationFailed problem that names the parameters of a request with query
// parameters, for routes without any, and a MalformedRequest problem if the query string cannot be
// parsed. Without a query string it returns nil. Ignoring ?limit=5 would let the client believe
// that the response respects the limit. CPU only.
func RejectQuery(r *http.Request) error {
	if r.URL.RawQuery == "" {
		return nil
	}
	_, err := parseQuery(r)
	return err
}

// parseQuery reads the query string. Only the given parameters may occur, each at most once; others
// are a ValidationFailed problem. A query string that cannot be parsed is a MalformedRequest
// problem.
func parseQuery(r *http.Request, names ...string) (url.Values, error) {
	values, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		const detail = "The query string is not well formed."
		p := problem.New(problem.MalformedRequest, detail, nil)
		p.Fields = []problem.FieldError{{Field: "query", Code: "malformed", Detail: detail}}
		return nil, p
	}
	var wrong []problem.FieldError
	for name, given := range values {
		switch {
		case !slices.Contains(names, name):
			wrong = append(wrong, problem.FieldError{Field: safeParameterName(name), Code: problem.UnknownField, Detail: "There is no such parameter."})
		case len(given) > 1:
			wrong = append(wrong, problem.FieldError{Field: name, Code: "duplicate", Detail: "Give it once."})
		}
	}
	if len(wrong) > 0 {
		slices.SortFunc(wrong, func(a, b problem.FieldError) int { return strings.Compare(a.Field, b.Field) })
		return nil, problem.Invalid(wrong...)
	}
	return values, nil
}

// safeParameterName returns the name of an unknown parameter if it looks like an identifier of at
// most 40 characters, and "query" otherwise: responses do not repeat arbitrary input.
func safeParameterName(name string) string {
	if len(name) == 0 || len(name) > 40 || strings.ContainsFunc(name, func(c rune) bool { return c < '!' || c > '~' }) {
		return "query"
	}
	return name
}
