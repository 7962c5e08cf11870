// Package cache stores expendable responses in Redis. It owns freshness, the single flight of
// loads, and invalidation by tags; an invalidation always beats a load in progress. It never
// interprets a body, and a failure of Redis never becomes an error of the caller.
package cache

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"melmastoon.ghasi.io/bff-consumer/shared/redisclient"
)

// State tells where an entry came from, for the X-Cache header.
type State string

// The states of an entry.
const (
	Hit    State = "HIT"    // read from Redis, fresh
	Miss   State = "MISS"   // loaded by this process, for this call or for an earlier call still in progress
	Stale  State = "STALE"  // read from Redis, no longer fresh
	Bypass State = "BYPASS" // the cache was not read
)

// NegativeTTL is how long an entry with a status other than 200 is kept if Loaded.TTL is 0.
const NegativeTTL = 30 * time.Second

// staleTTL is how long Redis keeps an entry after the end of freshness, as a fallback for failed
// loads.
const staleTTL = 10 * time.Minute

// readTimeout bounds the GET of GetOrLoad. After a failed read, acquiring the lock reads the entry
// again.
const readTimeout = 200 * time.Millisecond

// Loader makes missing entries. GetOrLoad runs the functions on a separate goroutine; a panic
// becomes the error of GetOrLoad. The context carries the values of the starting caller's context
// but outlives this caller. It ends 100 ms before the caller's deadline, 2.4 s after the start at
// the latest. GetOrLoad waits 50 ms longer for a function, then abandons the goroutine.
type Loader struct {
	TTL time.Duration // an entry with status 200 is fresh for TTL ±10 %, then stale for another 10 minutes

	// Load makes the entry.
	Load func(ctx context.Context) (Loaded, error)

	// RefreshRates makes a copy of a fresh entry with current rates, once RatesFreshUntil of the
	// entry has passed. The copy becomes stale and expires together with the old entry. nil: the
	// entry has no rates.
	RefreshRates func(ctx context.Context, old *Entry) (Loaded, error)
}

// Loaded is the result of a Loader function.
type Loaded struct {
	Entry
	Tags []string      // invalidating any of these tags removes the entry; may contain duplicates
	TTL  time.Duration // 0: Loader.TTL, or NegativeTTL if Status is not 200; negative: do not store the entry

	DependsOn []Dependency // the cache entries used to make this entry
}

// Cache is the client of the shared cache in a process. Safe for concurrent use.
type Cache struct {
	rdb        redis.UniversalClient
	keys       redisclient.Keys
	now        func() time.Time
	instanceID string
	jitter     func() float64 // in [-1, 1)

	mu      sync.Mutex
	flights map[string]*flight
}

// New returns a Cache, does no I/O, starts no goroutine and never fails. instanceID identifies this
// process in locks and must differ between processes. now decides about freshness; Redis deletes
// expired entries by the server's clock. rdb, from redisclient.Open, sets the time limits of the
// reads and writes; the caller closes rdb.
func New(rdb redis.UniversalClient, keys redisclient.Keys, now func() time.Time, instanceID string) *Cache {
	jitter := func() float64 { return 2*rand.Float64() - 1 }
	return &Cache{rdb: rdb, keys: keys, now: now, instanceID: instanceID, jitter: jitter, flights: map[string]*flight{}}
}

// Pending is the read of an entry on a pipeline.
type Pending struct{ cmd *redis.StringCmd }

// Enqueue puts the read of an entry on the caller's pipeline, as one GET. It does no I/O and never
// fails. Pass the result to GetOrLoad or Fresh after the pipeline has run. A failed read, a
// pipeline that never ran, and an unreadable or absent entry count as a miss.
func (c *Cache) Enqueue(ctx context.Context, pipe redis.Pipeliner, key string) *Pending {
	return &Pending{pipe.Get(ctx, key)}
}

// Fresh returns the prefetched entry if fresh; otherwise, and for a nil prefetched, a failed read
// or unreadable bytes, nil. It does no I/O and takes no lock; the cost is one checksum of the
// entry's bytes. Use Fresh only for entries without rates: RatesFreshUntil is not checked.
func (c *Cache) Fresh(prefetched *Pending) *Entry {
	if prefetched == nil {
		return nil
	}
	if e := prefetched.entry(); e != nil && c.now().Before(e.FreshUntil) {
		return e
	}
	return nil
}

// entry returns the result of the read; nil if the read failed or the bytes are unusable.
func (p *Pending) entry() *Entry {
	raw, err := p.cmd.Bytes()
	if err != nil {
		return nil
	}
	e, _ := decode(raw) // unreadable bytes are a miss
	return e
}

// GetOrLoad returns the entry under the full key, from Redis or from loader. prefetched is the read
// of the key by Enqueue; nil makes GetOrLoad read the key. Other callers may share the returned
// entry; do not change it.
//
//   - Fresh entry: GetOrLoad returns the entry. If only the rates are old, a single caller among
//     all processes waits for RefreshRates; all other callers get the entry with the old rates.
//   - Stale entry: a single caller among all processes waits for Load, and gets the stale entry if
//     Load fails. All other callers get the stale entry: at once if this process is loading
//     already, else after one round trip for the lock.
//   - No entry: a single flight among all processes runs Load. All callers wait for the result,
//     each until the end of the caller's context.
//
// Cost in round trips to Redis: 0 for a fresh prefetched entry, 1 of at most 200 ms for a read. A
// load adds 1 for the lock before Load, 1 per 250 ms during Load, and 2 after Load (tags, entry; 1
// without tags), or 1 to release the lock if Load fails or the entry is not to be stored. The first
// use of a script on a Redis server adds 1. A process waiting for the load of another process polls
// the lock every 25 ms. GetOrLoad holds a mutex of the process only to find the flight of the key;
// a load runs on goroutines of its own.
//
// Without Redis GetOrLoad does not fail: a single flight per process runs Load, and the entry is
// not stored. Until the breaker of the client opens, an unreachable Redis adds at most 200 ms for a
// read, 400 ms before Load and 400 ms after Load; then 0. A refusing Redis adds the time of a
// reply.
//
// Errors occur only without a usable entry: the error of Load, unchanged, or of ctx. A flight ends
// 100 ms before the deadline of its starter and after 2.4 s at the latest; then the error is
// context.DeadlineExceeded. A caller with over 250 ms more then starts a new flight. A panic of
// Load becomes an error with the stack. The end of ctx does not stop the load. If ctx has ended, a
// caller with a stale entry gets the entry, a caller without an entry the error of ctx. A failed
// RefreshRates leaves the entry with the old rates, a Hit. The entry is nil exactly if the error is
// not nil.
func (c *Cache) GetOrLoad(ctx context.Context, key string, prefetched *Pending, loader Loader) (*Entry, State, error) {
	if prefetched == nil {
		prefetched = c.read(ctx, key)
	}
	old := prefetched.entry()
	now := c.now()
	switch {
	case old == nil || !now.Before(old.ExpiresAt):
		return c.await(ctx, key, loader)
	case !now.Before(old.FreshUntil):
		return c.refresh(ctx, key, old, Stale, c.tryLoad(key, loader))
	case loader.RefreshRates != nil && old.ratesStale(now):
		return c.refresh(ctx, key, old, Hit, c.tryRefreshRates(key, old, loader))
	}
	return old, Hit, nil
}

func (c *Cache) read(ctx context.Context, key string) *Pending {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	return &Pending{c.rdb.Get(ctx, key)}
}

// await starts or joins the flight of the key, for a caller without an entry, and waits for the
// result.
func (c *Cache) await(ctx context.Context, key string, loader Loader) (*Entry, State, error) {
	for {
		if err := ctx.Err(); err != nil {
			return nil, Miss, err // start no load for a departed caller
		}
		f, started := c.join(ctx, key, c.blockingLoad(key, loader))
		select {
		case <-f.done:
		case <-ctx.Done():
			return nil, Miss, ctx.Err()
		}
		if !started && f.retryable(ctx) {
			continue
		}
		return f.entry, f.state, f.err
	}
}

// refresh returns old with state oldState at once if a flight of the key is in progress. Otherwise
// refresh starts a flight with work and returns the new entry, or old if the flight fails or ctx
// ends first.
func (c *Cache) refresh(ctx context.Context, key string, old *Entry, oldState State, work loadFunc) (*Entry, State, error) {
	f, started := c.join(ctx, key, work)
	if !started {
		return old, oldState, nil
	}
	select {
	case <-f.done:
	case <-ctx.Done():
		return old, oldState, nil
	}
	if f.err != nil {
		return old, oldState, nil
	}
	return f.entry, f.state, nil
}

var errBusy = errors.New("cache: another process is loading the entry")
