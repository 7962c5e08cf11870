package idempotency

import (
	"net/http"
	"slices"
	"strings"

	"melmastoon.ghasi.io/bff-consumer/shared/problem"
)

// The header that carries a key, and its alias.
const (
	headerName   = "Idempotency-Key"
	headerAlias  = "X-Idempotency-Key"
	maxKeyLength = 255
)

// ReplayedHeader is the header of an answer that was given before.
const ReplayedHeader = "Idempotency-Replayed"

// Key reads the key of a request; "" when it has none. A key is at most 255 printable ASCII characters; anything else,
// or two different keys, is MalformedRequest.
func Key(h http.Header) (string, error) {
	sent := slices.Concat(h.Values(headerName), h.Values(headerAlias))
	if len(sent) == 0 {
		return "", nil
	}
	key := sent[0]
	switch {
	case key == "" || len(key) > maxKeyLength || strings.ContainsFunc(key, func(c rune) bool { return c < ' ' || c > '~' }):
		return "", malformedKey("Must be 1 to 255 printable ASCII characters.")
	case slices.ContainsFunc(sent, func(other string) bool { return other != key }):
		return "", malformedKey("Send one key.")
	}
	return key, nil
}

// RequiredKey is Key for a route that does nothing without one: IdempotencyKeyRequired when there is none.
func RequiredKey(h http.Header) (string, error) {
	key, err := Key(h)
	if err == nil && key == "" {
		return "", problem.New(problem.IdempotencyKeyRequired, "Send an Idempotency-Key, a new one for every new request.", nil)
	}
	return key, err
}

func malformedKey(detail string) error {
	p := problem.New(problem.MalformedRequest, "See errors for what could not be read.", nil)
	p.Fields = []problem.FieldError{{Field: headerName, Code: "malformed", Detail: detail}}
	return p
}
