package upstream

import (
	"errors"
	"fmt"
)

// ErrNotFound means that an upstream does not know the requested thing. It is a valid response, not
// a failure: there is no retry, and the breaker counts a success.
var ErrNotFound = errors.New("upstream: not found")

// Reason is why an upstream gave no usable response. It may be shown to the guest as the reason of
// a degraded part.
type Reason string

// The reasons.
const (
	Timeout     Reason = "timeout"      // no response within the time limit of the upstream
	Unavailable Reason = "unavailable"  // no connection, a 5xx, a 429, or no token to call with
	BreakerOpen Reason = "breaker-open" // not called after too many recent failures
	BadResponse Reason = "bad-response" // a response that breaks the contract
	// the deadline of the request came first; wraps context.DeadlineExceeded
	Budget Reason = "budget"
)

// Error is every failure of an upstream except ErrNotFound and a cancelled caller
// (context.Canceled).
type Error struct {
	Upstream string // "search", "pricing", "property" or "theme"
	Reason   Reason
	Status   int // HTTP status; 0 without a response
	Err      error

	retryable bool // may be temporary: a second try makes sense
	fault     bool // counts as a failure in the breaker
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

// ReasonOf returns the Reason of the first *Error in err's chain; "" for nil and for any other
// error, such as ErrNotFound and a cancelled context. Pure.
func ReasonOf(err error) Reason {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Reason
	}
	return ""
}
