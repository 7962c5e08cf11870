package cache

import (
	"context"
	"errors"
	"time"
)

// job describes the work of a flight.
type job struct {
	key        string
	cached     *Entry                  // the caller's entry; may be nil
	acceptable func(found *Entry) bool // whether the entry now in Redis makes a load needless

	// load returns the new entry with all times set. found is the entry now in Redis, or nil.
	load  func(ctx context.Context, found *Entry) (Loaded, error)
	state State // of a loaded entry
}

// blockingLoad returns the work for callers without an entry; the work waits for a load of another
// process.
func (c *Cache) blockingLoad(key string, loader Loader) loadFunc {
	j := c.loadJob(key, loader)
	return func(ctx context.Context) (*Entry, State, error) {
		poll := time.NewTicker(pollInterval)
		defer poll.Stop()
		for {
			e, state, err := c.attempt(ctx, j)
			if !errors.Is(err, errBusy) {
				return e, state, err
			}
			select {
			case <-poll.C: // the lock of a dead process expires, and a polling process gets the lock
			case <-ctx.Done():
				return nil, Miss, ctx.Err()
			}
		}
	}
}

// tryLoad returns the work for a caller with a stale entry: a single attempt, or errBusy if another
// process loads.
func (c *Cache) tryLoad(key string, loader Loader) loadFunc {
	j := c.loadJob(key, loader)
	return func(ctx context.Context) (*Entry, State, error) { return c.attempt(ctx, j) }
}

func (c *Cache) loadJob(key string, loader Loader) job {
	return job{
		key: key, state: Miss,
		acceptable: func(found *Entry) bool { return found.fresh(c.now()) },
		load: func(ctx context.Context, _ *Entry) (Loaded, error) {
			loaded, err := loader.Load(ctx)
			if err == nil {
				c.setExpiry(&loaded, loader.TTL)
			}
			return loaded, err
		},
	}
}

// tryRefreshRates returns the work for a caller with a fresh entry and old rates: a single attempt,
// or errBusy.
func (c *Cache) tryRefreshRates(key string, old *Entry, loader Loader) loadFunc {
	j := job{
		key: key, cached: old, state: Hit,
		acceptable: func(found *Entry) bool { return found.fresh(c.now()) && !found.ratesStale(c.now()) },
		load: func(ctx context.Context, found *Entry) (Loaded, error) {
			if !found.fresh(c.now()) {
				return Loaded{}, errBusy // deleted since the caller's read; a refresh would restore the entry
			}
			loaded, err := loader.RefreshRates(ctx, found)
			loaded.FreshUntil, loaded.ExpiresAt, loaded.startedAt = found.FreshUntil, found.ExpiresAt, found.startedAt
			return loaded, err
		},
	}
	return func(ctx context.Context) (*Entry, State, error) { return c.attempt(ctx, j) }
}

// attempt acquires the lease and runs the job. The result is the entry in Redis if acceptable, and
// errBusy if another process holds the lease and Redis has no usable entry.
func (c *Cache) attempt(ctx context.Context, j job) (*Entry, State, error) {
	l, found, err := c.acquire(ctx, j.key)
	switch {
	case err != nil: // without Redis, every process loads
		return c.loadAsLeader(ctx, j, nil, j.cached)
	case found != nil && j.acceptable(found):
		l.release(ctx)
		return found, Hit, nil
	case l == nil:
		return c.fallback(found, errBusy)
	}
	return c.loadAsLeader(ctx, j, l, found)
}

// loadAsLeader loads the entry and, with a lease, stores the entry.
func (c *Cache) loadAsLeader(ctx context.Context, j job, l *lease, found *Entry) (*Entry, State, error) {
	loaded, err := runWithLease(ctx, l, func(ctx context.Context) (Loaded, error) { return j.load(ctx, found) })
	if err != nil {
		l.release(ctx)
		return c.fallback(found, err)
	}
	if l != nil && loaded.startedAt == 0 {
		loaded.startedAt = l.acquiredAt
	}
	if loaded.TTL < 0 {
		l.release(ctx)
	} else {
		l.store(ctx, &loaded)
	}
	return &loaded.Entry, j.state, nil
}

// fallback returns the found entry, or err after the entry's expiry. A caller with a failed read
// does not have the found entry.
func (c *Cache) fallback(found *Entry, err error) (*Entry, State, error) {
	switch now := c.now(); {
	case found.fresh(now):
		return found, Hit, nil
	case found != nil && now.Before(found.ExpiresAt):
		return found, Stale, nil
	}
	return nil, Miss, err
}

// setExpiry sets until when the entry is fresh and kept, in whole milliseconds as in the stored
// layout. Negative entries and entries not to be stored have no stale period and no jitter.
func (c *Cache) setExpiry(loaded *Loaded, ttl time.Duration) {
	now := c.now().Truncate(time.Millisecond)
	negative := loaded.Status != 200
	switch {
	case loaded.TTL != 0:
		ttl = loaded.TTL
	case negative:
		ttl = NegativeTTL
	}
	if negative || ttl <= 0 {
		loaded.FreshUntil = now.Add(max(ttl, 0))
		loaded.ExpiresAt = loaded.FreshUntil
		return
	}
	// entries loaded together do not become stale together
	ttl += time.Duration(c.jitter() * float64(ttl) / 10)
	loaded.FreshUntil = now.Add(ttl)
	loaded.ExpiresAt = loaded.FreshUntil.Add(staleTTL)
}
