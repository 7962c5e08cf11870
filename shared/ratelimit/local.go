package ratelimit

import (
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"
)

// maxLocalBuckets is how many buckets an instance keeps while Redis is away, some 8 MB of them. What is pushed out is full again:
// a crowd that large is let through rather than kept out.
const maxLocalBuckets = 32_768

// localLimiter are the buckets of this instance, for those that Redis does not answer for. Safe for concurrent use.
type localLimiter struct {
	now func() time.Time

	mu     sync.Mutex
	fullAt *simplelru.LRU[string, time.Time] // when a bucket will be full again, by its key
}

func newLocalLimiter(now func() time.Time) *localLimiter {
	full, err := simplelru.NewLRU[string, time.Time](maxLocalBuckets, nil)
	if err != nil {
		panic(err) // unreachable: the size is a positive constant
	}
	return &localLimiter{now: now, fullAt: full}
}

// spend takes one request from each of the buckets, or none from any.
func (l *localLimiter) spend(buckets []*bucket) {
	if len(buckets) == 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	now, all := l.now(), true
	for _, b := range buckets {
		full, _ := l.fullAt.Get(b.key)
		b.untilFull, b.taken = b.rate.spend(full.Sub(now))
		all = all && b.taken
	}
	for _, b := range buckets {
		switch {
		case all:
			l.fullAt.Add(b.key, now.Add(b.untilFull))
		case b.taken:
			b.untilFull -= b.rate.interval
		}
	}
}
