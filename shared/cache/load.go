package cache

import (
	"context"
	"errors"
	"time"
)

// job is what one flight is to do about one entry.
type job struct {
	key        string
	cached     *Entry                                                  // what the caller has, if anything
	acceptable func(found *Entry) bool                                 // what is in Redis by now will do
	load       func(ctx context.Context, found *Entry) (Loaded, error) // with its times set
	state      State                                                   // of what is made
}

// blockingLoad is the work for callers who have nothing: they wait, also for another process.
func (c *Cache) blockingLoad(key string, r Loader) loadFunc {
	j := c.loadJob(key, r)
	return func(ctx context.Context) (*Entry, State, error) {
		poll := time.NewTicker(pollInterval)
		defer poll.Stop()
		for {
			e, state, err := c.attempt(ctx, j)
			if !errors.Is(err, errBusy) {
				return e, state, err
			}
			select {
			case <-poll.C: // a leader that died has let go of the lock, and one of those who poll has it
			case <-ctx.Done():
				return nil, Miss, ctx.Err()
			}
		}
	}
}

// tryLoad is the work for a caller with a stale entry: one attempt, or errBusy.
func (c *Cache) tryLoad(key string, r Loader) loadFunc {
	j := c.loadJob(key, r)
	return func(ctx context.Context) (*Entry, State, error) { return c.attempt(ctx, j) }
}

func (c *Cache) loadJob(key string, r Loader) job {
	return job{
		key: key, state: Miss,
		acceptable: func(found *Entry) bool { return found.fresh(c.now()) },
		load: func(ctx context.Context, _ *Entry) (Loaded, error) {
			filled, err := r.Load(ctx)
			if err == nil {
				c.setExpiry(&filled, r.TTL)
			}
			return filled, err
		},
	}
}

// tryRefreshRates is the work for a caller with a fresh entry whose rates are old: one attempt, or errBusy.
func (c *Cache) tryRefreshRates(key string, old *Entry, r Loader) loadFunc {
	j := job{
		key: key, cached: old, state: Hit,
		acceptable: func(found *Entry) bool { return found.fresh(c.now()) && !found.ratesStale(c.now()) },
		load: func(ctx context.Context, found *Entry) (Loaded, error) {
			if !found.fresh(c.now()) {
				return Loaded{}, errBusy // gone since it was read: renewing would put it back
			}
			filled, err := r.RefreshRates(ctx, found)
			filled.FreshUntil, filled.ExpiresAt, filled.startedAt = found.FreshUntil, found.ExpiresAt, found.startedAt
			return filled, err
		},
	}
	return func(ctx context.Context) (*Entry, State, error) { return c.attempt(ctx, j) }
}

// attempt does the job if no other process is at it, and if it still needs doing.
func (c *Cache) attempt(ctx context.Context, j job) (*Entry, State, error) {
	l, found, err := c.acquire(ctx, j.key)
	switch {
	case err != nil: // without Redis, every process is its own leader
		return c.loadAsLeader(ctx, j, nil, j.cached)
	case found != nil && j.acceptable(found):
		l.release(ctx)
		return found, Hit, nil
	case l == nil:
		return c.fallback(found, errBusy)
	}
	return c.loadAsLeader(ctx, j, l, found)
}

// loadAsLeader makes the entry, and stores it when there is a lease.
func (c *Cache) loadAsLeader(ctx context.Context, j job, l *lease, found *Entry) (*Entry, State, error) {
	filled, err := runWithLease(ctx, l, func(ctx context.Context) (Loaded, error) { return j.load(ctx, found) })
	if err != nil {
		l.release(ctx)
		return c.fallback(found, err)
	}
	if l != nil && filled.startedAt == 0 {
		filled.startedAt = l.acquiredAt
	}
	if filled.TTL < 0 {
		l.release(ctx)
	} else {
		l.store(ctx, &filled)
	}
	return &filled.Entry, j.state, nil
}

// fallback answers with what was found, if it is still kept: the callers may not have it, when their own read failed.
func (c *Cache) fallback(found *Entry, err error) (*Entry, State, error) {
	switch now := c.now(); {
	case found.fresh(now):
		return found, Hit, nil
	case found != nil && now.Before(found.ExpiresAt):
		return found, Stale, nil
	}
	return nil, Miss, err
}

// setExpiry says how long what was filled is fresh and kept. Times are whole milliseconds, as they are stored.
func (c *Cache) setExpiry(filled *Loaded, ttl time.Duration) {
	now := c.now().Truncate(time.Millisecond)
	negative := filled.Status != 200
	switch {
	case filled.TTL != 0:
		ttl = filled.TTL
	case negative:
		ttl = NegativeTTL
	}
	if negative || ttl <= 0 { // neither is worth keeping past its time
		filled.FreshUntil = now.Add(max(ttl, 0))
		filled.ExpiresAt = filled.FreshUntil
		return
	}
	ttl += time.Duration(c.jitter() * float64(ttl) / 10) // so that what was filled together does not grow old together
	filled.FreshUntil = now.Add(ttl)
	filled.ExpiresAt = filled.FreshUntil.Add(staleTTL)
}
