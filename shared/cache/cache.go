// Package cache owns answers that may be forgotten: when they are fresh, who fetches them again, and that an
// invalidation beats a fetch under way. It never knows what an answer says, and never fails because Redis does.
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

// State says where an answer came from, for X-Cache.
type State string

// The states of an answer.
const (
	Hit    State = "HIT"    // read from Redis, fresh
	Miss   State = "MISS"   // fetched by this process, for this call or one that it joined
	Stale  State = "STALE"  // read from Redis, past its freshness
	Bypass State = "BYPASS" // the cache was not asked
)

// NegativeTTL is the life of an answer that says there is nothing, when its Fill names no other.
const NegativeTTL = 30 * time.Second

// staleTTL is how long past its freshness an answer is kept, in case no newer one can be had.
const staleTTL = 10 * time.Minute

// readTimeout bounds a read that Do makes itself. When it fails, taking the lock reads again.
const readTimeout = 200 * time.Millisecond

// Loader says how long an answer is good for and how to make it.
type Loader struct {
	TTL time.Duration // fresh for so long, ±10 %

	// Fill makes the answer. Its context carries the values of one caller's, but lives on when that caller leaves; it
	// ends early enough for what was made to be stored and written.
	Load func(ctx context.Context) (Loaded, error)

	// Renew, if not nil, makes a fresh entry whose rates are too old into one with newer rates. It stays fresh and kept
	// for as long as the old one would have been.
	RefreshRates func(ctx context.Context, old *Entry) (Loaded, error)
}

// Loaded is what a Fill made.
type Loaded struct {
	Entry
	Tags []string      // what it is to be invalidated by; doubles are allowed
	TTL  time.Duration // 0: the Recipe's, or NegativeTTL when Status is not 200; below 0: answered, never stored

	DependsOn []Dependency // the entries that the answer was made of, if any
}

// Cache is one process's view of the cache. Safe for concurrent use.
type Cache struct {
	rdb        redis.UniversalClient
	keys       redisclient.Keys
	now        func() time.Time
	instanceID string
	jitter     func() float64 // in [-1, 1)

	mu      sync.Mutex
	flights map[string]*flight
}

// New makes a Cache. owner names this instance in locks. now decides what is fresh; Redis only throws away what is no
// longer kept, by its own clock.
func New(rdb redis.UniversalClient, keys redisclient.Keys, now func() time.Time, owner string) *Cache {
	jitter := func() float64 { return 2*rand.Float64() - 1 }
	return &Cache{rdb: rdb, keys: keys, now: now, instanceID: owner, jitter: jitter, flights: map[string]*flight{}}
}

// Pending is an entry that was asked for.
type Pending struct{ cmd *redis.StringCmd }

// Enqueue queues the read of an entry on the caller's pipeline, for Do to use once the pipeline has run.
func (c *Cache) Enqueue(ctx context.Context, pipe redis.Pipeliner, key string) *Pending {
	return &Pending{pipe.Get(ctx, key)}
}

// Fresh is the entry that Do would answer with at once, because what was read of it is fresh; nil when it would do more.
// For an entry that has no rates. seen may be nil.
func (c *Cache) Fresh(seen *Pending) *Entry {
	if seen == nil {
		return nil
	}
	if e := seen.entry(); e != nil && c.now().Before(e.FreshUntil) {
		return e
	}
	return nil
}

// entry is what was read; nil when that is nothing usable.
func (p *Pending) entry() *Entry {
	raw, err := p.cmd.Bytes()
	if err != nil {
		return nil
	}
	e, _ := decode(raw) // what cannot be decoded is a miss
	return e
}

// GetOrLoad answers from the cache, or makes and stores the answer. key is the full key; seen what was read of it, nil to read
// it now. The entry may be shared with other callers and must not be changed.
//
//   - fresh: it is the answer. Are only its rates old, one caller renews them and the others get it as it is.
//   - stale: one caller of all processes fetches a new one; the others, and that one when it fails, get the old.
//   - nothing: one caller of all processes fetches, the others wait, each no longer than its own context.
//
// Redis out of reach never makes an error: then one caller of each process fetches, and nothing is stored. It costs at
// most 400 ms before Fill and 400 ms after, until it is known to be away; then nothing. One that refuses costs its
// reply. Errors are those of Fill, as they are, or of ctx.
func (c *Cache) GetOrLoad(ctx context.Context, key string, seen *Pending, r Loader) (*Entry, State, error) {
	if seen == nil {
		seen = c.read(ctx, key)
	}
	old := seen.entry()
	now := c.now()
	switch {
	case old == nil || !now.Before(old.ExpiresAt):
		return c.await(ctx, key, r)
	case !now.Before(old.FreshUntil):
		return c.refresh(ctx, key, old, Stale, c.tryLoad(key, r))
	case r.RefreshRates != nil && old.ratesStale(now):
		return c.refresh(ctx, key, old, Hit, c.tryRefreshRates(key, old, r))
	}
	return old, Hit, nil
}

func (c *Cache) read(ctx context.Context, key string) *Pending {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	return &Pending{c.rdb.Get(ctx, key)}
}

// await gets an answer for a caller that has none.
func (c *Cache) await(ctx context.Context, key string, r Loader) (*Entry, State, error) {
	for {
		if err := ctx.Err(); err != nil {
			return nil, Miss, err // nothing is fetched for who is gone
		}
		f, started := c.join(ctx, key, c.blockingLoad(key, r))
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

// refresh answers with old, unless this caller is the one to make a better one and does.
func (c *Cache) refresh(ctx context.Context, key string, old *Entry, as State, work loadFunc) (*Entry, State, error) {
	f, started := c.join(ctx, key, work)
	if !started {
		return old, as, nil
	}
	select {
	case <-f.done:
	case <-ctx.Done():
		return old, as, nil
	}
	if f.err != nil {
		return old, as, nil
	}
	return f.entry, f.state, nil
}

var errBusy = errors.New("cache: another process is at it")
