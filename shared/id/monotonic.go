package id

import (
	"time"

	"github.com/oklog/ulid/v2"
)

// Monotonic creates ascending ids, whatever ids other goroutines create in between. The zero value
// is ready for use. Not safe for concurrent use.
type Monotonic struct{ last ulid.ULID }

// New returns an id with the time now, or the successor of the last id, whichever is greater; after
// a step back of the clock the time of the id is that of the last id. New never fails, does no I/O
// and takes the mutex of the package's New, shared by the whole process, for a moment.
func (m *Monotonic) New(p Prefix, now time.Time) string {
	u := newULID(now)
	if u.Compare(m.last) <= 0 {
		u = successor(m.last)
	}
	m.last = u
	return FromUUID(p, u)
}

// successor returns the smallest ULID greater than u.
func successor(u ulid.ULID) ulid.ULID {
	for i := len(u) - 1; i >= 0; i-- {
		if u[i]++; u[i] != 0 {
			break
		}
	}
	return u
}
