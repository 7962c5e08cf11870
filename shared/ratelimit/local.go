package ratelimit

import (
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"
)

// maxLocalBuckets bounds the memory of an instance to about 8 MB of buckets. Beyond the bound the
// least recently used bucket is evicted and counts as full again: an instance with more clients
// allows requests rather than reject them.
const maxLocalBuckets = 32_768

// localLimiter holds the buckets of an instance. Resolve uses a local bucket if Redis does not
// answer for the bucket. Instances do not share counts. Safe for concurrent use.
type localLimiter struct {
	now func() time.Time

	mu     sync.Mutex
	fullAt *simplelru.LRU[string, time.Time] // time at which a bucket is full again, by bucket key
}

func newLocalLimiter(now func() time.Time) *localLimiter {
	full, err := simplelru.NewLRU[string, time.Time](maxLocalBuckets, nil)
	if err != nil {
		panic(err) // unreachable: the size is a positive constant
	}
	return &localLimiter{now: now, fullAt: full}
}

// spend takes one request from every bucket, or from no bucket if a bucket is empty.
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
