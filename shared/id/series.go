package id

import (
	"time"

	"github.com/oklog/ulid/v2"
)

// Series mints ids that ascend as they are minted for one time, or for times that do not go back, whatever others mint
// meanwhile. The zero value begins one. It is not safe for concurrent use.
type Series struct{ last ulid.ULID }

// New mints an id at the given time, after all that the series minted for that time.
func (s *Series) New(p Prefix, now time.Time) string {
	u := mint(now)
	if u.Time() == s.last.Time() && u.Compare(s.last) <= 0 {
		u = next(s.last)
	}
	s.last = u
	return FromUUID(p, u)
}

// next is the least ULID that is greater than u.
func next(u ulid.ULID) ulid.ULID {
	for i := len(u) - 1; i >= 0; i-- {
		if u[i]++; u[i] != 0 {
			break
		}
	}
	return u
}
