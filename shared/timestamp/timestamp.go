// Package instant owns how a point in time is written for others, in bodies, messages and tokens alike, and how one is
// read that others wrote. It never reads a clock.
package timestamp

import (
	"errors"
	"strings"
	"time"
)

// Layout is RFC 3339 in UTC, always with three digits of milliseconds: "2026-04-23T10:14:22.000Z". A time is brought to
// UTC before it is written by it, because the Z is a letter of the layout.
const Layout = "2006-01-02T15:04:05.000Z"

// Format writes a time, whatever its zone; what is finer than a millisecond is cut off.
func Format(t time.Time) string { return t.UTC().Format(Layout) }

var errMalformed = errors.New("instant: not a time of RFC 3339")

// Parse reads a time in any form that RFC 3339 has, also those that package time does not know: the letters t and z, and
// the second 60. All of a leap second is the last microsecond before it, which Postgres can tell from what comes after:
// so it stays between its neighbours. Beyond the standard it takes what package time takes.
func Parse(s string) (t time.Time, err error) {
	text := []byte(strings.ToUpper(s))
	leap := len(text) > 19 && string(text[16:19]) == ":60"
	if leap {
		copy(text[16:], ":59")
	}
	if t, err = time.Parse(time.RFC3339Nano, string(text)); err != nil {
		return time.Time{}, errMalformed // without the text
	}
	if !leap {
		return t, nil
	}
	if at := t.UTC(); at.Hour() != 23 || at.Minute() != 59 { // the only minute that may be a second longer
		return time.Time{}, errMalformed
	}
	return t.Truncate(time.Second).Add(time.Second - time.Microsecond), nil
}
