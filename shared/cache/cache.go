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

	"melmastoon.ghasi.io/bff-consumer/shared/keyspace"
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

// keepStale is how long past its freshness an answer is kept, in case no newer one can be had.
const keepStale = 10 * time.Minute

// readBudget bounds a read that Do makes itself. When it fails, taking the lock reads again.
const readBudget = 200 * time.Millisecond

// Recipe says how long an answer is good for and how to make it.
type Recipe struct {
	TTL time.Duration // fresh for so long, ±10 %

	// Fill makes the answer. Its context carries the values of one caller's, but lives on when that caller leaves; it
	// ends early enough for what was made to be stored and written.
	Fill func(ctx context.Context) (Filled, error)

	// Renew, if not nil, makes a fresh entry whose rates are too old into one with newer rates. It stays fresh and kept
	// for as long as the old one would have been.
	Renew func(ctx context.Context, old *Entry) (Filled, error)
}

// Filled is what a Fill made.
type Filled struct {
	Entry
	Tags []string      // what it is to be invalidated by; doubles are allowed
	TTL  time.Duration // 0: the Recipe's, or NegativeTTL when Status is not 200; below 0: answered, never stored
}

// Cache is one process's view of the cache. Safe for concurrent use.
type Cache struct {
	rdb    redis.UniversalClient
	keys   keyspace.Keys
	now    func() time.Time
	owner  string
	jitter func() float64 // in [-1, 1)

	mu      sync.Mutex
	flights map[string]*flight
}

// New makes a Cache. owner names this instance in locks. now decides what is fresh; Redis only throws away what is no
// longer kept, by its own clock.
func New(rdb redis.UniversalClient, keys keyspace.Keys, now func() time.Time, owner string) *Cache {
	jitter := func() float64 { return 2*rand.Float64() - 1 }
	return &Cache{rdb: rdb, keys: keys, now: now, owner: owner, jitter: jitter, flights: map[string]*flight{}}
}

// Peeked is an entry that was asked for.
type Peeked struct{ cmd *redis.StringCmd }

// Peek queues the read of an entry on the caller's pipeline, for Do to use once the pipeline has run.
func (c *Cache) Peek(ctx context.Context, pipe redis.Pipeliner, key string) *Peeked {
	return &Peeked{pipe.Get(ctx, key)}
}

// Fresh is the entry that Do would answer with at once, because what was read of it is fresh; nil when it would do more.
// For an entry that has no rates. seen may be nil.
func (c *Cache) Fresh(seen *Peeked) *Entry {
	if seen == nil {
		return nil
	}
	if e := seen.entry(); e != nil && c.now().Before(e.FreshUntil) {
		return e
	}
	return nil
}

// entry is what was read; nil when that is nothing usable.
func (p *Peeked) entry() *Entry {
	raw, err := p.cmd.Bytes()
	if err != nil {
		return nil
	}
	e, _ := decode(raw) // what cannot be decoded is a miss
	return e
}

// Do answers from the cache, or makes and stores the answer. key is the full key; seen what was read of it, nil to read
// it now. The entry may be shared with other callers and must not be changed.
//
//   - fresh: it is the answer. Are only its rates old, one caller renews them and the others get it as it is.
//   - stale: one caller of all processes fetches a new one; the others, and that one when it fails, get the old.
//   - nothing: one caller of all processes fetches, the others wait, each no longer than its own context.
//
// Redis out of reach never makes an error: then one caller of each process fetches, and nothing is stored. It costs at
// most 400 ms before Fill and 400 ms after, until it is known to be away; then nothing. One that refuses costs its
// reply. Errors are those of Fill, as they are, or of ctx.
func (c *Cache) Do(ctx context.Context, key string, seen *Peeked, r Recipe) (*Entry, State, error) {
	if seen == nil {
		seen = c.read(ctx, key)
	}
	old := seen.entry()
	now := c.now()
	switch {
	case old == nil || !now.Before(old.KeptUntil):
		return c.await(ctx, key, r)
	case !now.Before(old.FreshUntil):
		return c.improve(ctx, key, old, Stale, c.refill(key, r))
	case r.Renew != nil && old.ratesOld(now):
		return c.improve(ctx, key, old, Hit, c.renew(key, old, r))
	}
	return old, Hit, nil
}

func (c *Cache) read(ctx context.Context, key string) *Peeked {
	ctx, cancel := context.WithTimeout(ctx, readBudget)
	defer cancel()
	return &Peeked{c.rdb.Get(ctx, key)}
}

// await gets an answer for a caller that has none.
func (c *Cache) await(ctx context.Context, key string, r Recipe) (*Entry, State, error) {
	for {
		if err := ctx.Err(); err != nil {
			return nil, Miss, err // nothing is fetched for who is gone
		}
		f, started := c.join(ctx, key, c.fill(key, r))
		select {
		case <-f.done:
		case <-ctx.Done():
			return nil, Miss, ctx.Err()
		}
		if !started && f.failedFor(ctx) {
			continue
		}
		return f.entry, f.state, f.err
	}
}

// improve answers with old, unless this caller is the one to make a better one and does.
func (c *Cache) improve(ctx context.Context, key string, old *Entry, as State, work work) (*Entry, State, error) {
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
