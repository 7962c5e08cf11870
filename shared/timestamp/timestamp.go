// Package timestamp formats times for bodies, messages and tokens, and parses times from elsewhere.
// It never reads a clock. All functions are pure.
package timestamp

import (
	"errors"
	"strings"
	"time"
)

// Layout is RFC 3339 in UTC with three digits of milliseconds: "2026-04-23T10:14:22.000Z". Convert
// a time to UTC before using Layout, because the Z is a literal.
const Layout = "2006-01-02T15:04:05.000Z"

// Format returns t in Layout, converted to UTC and truncated to milliseconds. It never fails; for a
// year outside 0 … 9999 the text is not RFC 3339, and Parse rejects it.
func Format(t time.Time) string { return t.UTC().Format(Layout) }

var errMalformed = errors.New("timestamp: not an RFC 3339 time")

// Parse parses any form of RFC 3339, including the lower-case letters t and z and the second 60,
// both unknown to package time. A leap second, valid only as 23:59:60 UTC, becomes the last
// microsecond before it: Postgres can distinguish this time from the next second, so the order of
// times is kept. Parse also accepts the deviations from RFC 3339 accepted by package time. The
// result has the offset of s, so convert to UTC where the zone matters. For any other text Parse
// returns the zero time and an error that does not repeat s.
func Parse(s string) (t time.Time, err error) {
	text := []byte(strings.ToUpper(s))
	leap := len(text) > 19 && string(text[16:19]) == ":60"
	if leap {
		copy(text[16:], ":59")
	}
	if t, err = time.Parse(time.RFC3339Nano, string(text)); err != nil {
		return time.Time{}, errMalformed // the error must not repeat the text
	}
	if !leap {
		return t, nil
	}
	// only the last minute of a UTC day may have a leap second
	if at := t.UTC(); at.Hour() != 23 || at.Minute() != 59 {
		return time.Time{}, errMalformed
	}
	return t.Truncate(time.Second).Add(time.Second - time.Microsecond), nil
}
