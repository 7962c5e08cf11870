package ratelimit

import (
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"
)

// maxLocal is how many buckets an instance keeps while Redis is away, some 8 MB of them. What is pushed out is full again:
// a crowd that large is let through rather than kept out.
const maxLocal = 32_768

// local are the buckets of this instance, for those that Redis does not answer for. Safe for concurrent use.
type local struct {
	now func() time.Time

	mu   sync.Mutex
	full *simplelru.LRU[string, time.Time] // when a bucket will be full again, by its key
}

func newLocal(now func() time.Time) *local {
	full, err := simplelru.NewLRU[string, time.Time](maxLocal, nil)
	if err != nil {
		panic(err) // unreachable: the size is a positive constant
	}
	return &local{now: now, full: full}
}

// spend takes one request from each of the buckets, or none from any.
func (l *local) spend(buckets []*bucket) {
	if len(buckets) == 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	now, all := l.now(), true
	for _, b := range buckets {
		full, _ := l.full.Get(b.key)
		b.lack, b.taken = b.pace.spend(full.Sub(now))
		all = all && b.taken
	}
	for _, b := range buckets {
		switch {
		case all:
			l.full.Add(b.key, now.Add(b.lack))
		case b.taken:
			b.lack -= b.pace.gain
		}
	}
}
