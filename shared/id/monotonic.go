package id

import (
	"time"

	"github.com/oklog/ulid/v2"
)

// Monotonic mints ids that ascend as they are minted, whatever others mint meanwhile. The zero value begins one. It is not safe
// for concurrent use.
type Monotonic struct{ last ulid.ULID }

// New mints an id at the given time, or, where that is not after the last of the series, the next after that.
func (s *Monotonic) New(p Prefix, now time.Time) string {
	u := newULID(now)
	if u.Compare(s.last) <= 0 {
		u = successor(s.last)
	}
	s.last = u
	return FromUUID(p, u)
}

// successor is the least ULID that is greater than u.
func successor(u ulid.ULID) ulid.ULID {
	for i := len(u) - 1; i >= 0; i-- {
		if u[i]++; u[i] != 0 {
			break
		}
	}
	return u
}
