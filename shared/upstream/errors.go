package upstream

import (
	"errors"
	"fmt"
)

// ErrNotFound is an upstream's word that the thing asked for does not exist. It is an answer, not a failure.
var ErrNotFound = errors.New("upstream: not found")

// Reason says why an upstream gave no usable answer. It is fit to be shown as the reason of a degraded part.
type Reason string

const (
	Timeout     Reason = "timeout"      // no answer within the upstream's own limit
	Unavailable Reason = "unavailable"  // no connection, a 5xx, a 429, or no token to call with
	BreakerOpen Reason = "breaker-open" // not asked: it failed too often just now
	BadResponse Reason = "bad-response" // an answer that breaks the contract
	Budget      Reason = "budget"       // the request's own deadline came first; wraps context.DeadlineExceeded
)

// Error is every failure of an upstream except ErrNotFound and a caller that went away (context.Canceled).
type Error struct {
	Upstream string // "search", "pricing", "property" or "theme"
	Reason   Reason
	Status   int // HTTP status when there was one, else 0
	Err      error

	retryable bool // may pass: a second try is worth it
	fault     bool // counts against the upstream in its breaker
}

func (e *Error) Error() string {
	text := "upstream: " + e.Upstream + ": " + string(e.Reason)
	if e.Status != 0 {
		text += fmt.Sprintf(" (status %d)", e.Status)
	}
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text
}

func (e *Error) Unwrap() error { return e.Err }

// ReasonOf is the Reason of an upstream failure anywhere in err's chain, or "".
func ReasonOf(err error) Reason {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Reason
	}
	return ""
}
