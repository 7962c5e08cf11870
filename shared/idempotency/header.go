package idempotency

import (
	"net/http"
	"slices"
	"strings"

	"melmastoon.ghasi.io/bff-consumer/shared/problem"
)

// The request header for a key and its alias.
const (
	headerName   = "Idempotency-Key"
	headerAlias  = "X-Idempotency-Key"
	maxKeyLength = 255
)

// ReplayedHeader is the response header of a replayed response.
const ReplayedHeader = "Idempotency-Replayed"

// Key returns the idempotency key of a request, or "" without a key. A key has 1 to 255 printable
// ASCII characters. Key returns "" and the problem MalformedRequest for any other value, an empty
// header included, and for two different keys; the same key may occur twice. CPU only.
func Key(h http.Header) (string, error) {
	values := slices.Concat(h.Values(headerName), h.Values(headerAlias))
	if len(values) == 0 {
		return "", nil
	}
	key := values[0]
	switch {
	case key == "" || len(key) > maxKeyLength || strings.ContainsFunc(key, func(c rune) bool { return c < ' ' || c > '~' }):
		return "", malformedKey("Must be 1 to 255 printable ASCII characters.")
	case slices.ContainsFunc(values, func(other string) bool { return other != key }):
		return "", malformedKey("Send one key.")
	}
	return key, nil
}

// RequiredKey is Key for a route that requires an idempotency key. Without a key it returns the
// problem IdempotencyKeyRequired (400). CPU only.
func RequiredKey(h http.Header) (string, error) {
	key, err := Key(h)
	if err == nil && key == "" {
		return "", problem.New(problem.IdempotencyKeyRequired, "Send an Idempotency-Key, a new one for every new request.", nil)
	}
	return key, err
}

// malformedKey returns the problem for an invalid header.
func malformedKey(detail string) error {
	p := problem.New(problem.MalformedRequest, "See errors for what could not be read.", nil)
	p.Fields = []problem.FieldError{{Field: headerName, Code: "malformed", Detail: detail}}
	return p
}
