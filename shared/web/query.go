package web

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	"melmastoon.ghasi.io/bff-consumer/shared/problem"
)

// RejectQuery refuses a request with a parameter in its URL, for a route that has none: who sends ?limit=5 would take an
// answer for one that heeds it.
func RejectQuery(r *http.Request) error {
	if r.URL.RawQuery == "" {
		return nil
	}
	_, err := parseQuery(r)
	return err
}

// parseQuery reads the query string: parameters of these names, each at most once, and no others.
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

// safeParameterName names an unknown parameter without repeating more of it than an identifier could be.
func safeParameterName(name string) string {
	if len(name) == 0 || len(name) > 40 || strings.ContainsFunc(name, func(c rune) bool { return c < '!' || c > '~' }) {
		return "query"
	}
	return name
}
