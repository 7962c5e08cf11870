// Package instant owns how a point in time is written for others, in bodies, messages and tokens alike. It never reads
// a clock.
package instant

import "time"

// Layout is RFC 3339 in UTC, always with three digits of milliseconds: "2026-04-23T10:14:22.000Z". A time is brought to
// UTC before it is written by it, because the Z is a letter of the layout.
const Layout = "2006-01-02T15:04:05.000Z"

// Text writes a time, whatever its zone; what is finer than a millisecond is cut off.
func Text(t time.Time) string { return t.UTC().Format(Layout) }
