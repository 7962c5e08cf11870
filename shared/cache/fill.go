package cache

import (
	"context"
	"errors"
	"time"
)

// job is what one flight is to do about one entry.
type job struct {
	key    string
	known  *Entry                                                  // what the caller has, if anything
	enough func(found *Entry) bool                                 // what is in Redis by now will do
	do     func(ctx context.Context, found *Entry) (Filled, error) // with its times set
	state  State                                                   // of what is made
}

// fill is the work for callers who have nothing: they wait, also for another process.
func (c *Cache) fill(key string, r Recipe) work {
	j := c.refillJob(key, r)
	return func(ctx context.Context) (*Entry, State, error) {
		poll := time.NewTicker(pollEvery)
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

// refill is the work for a caller with a stale entry: one attempt, or errBusy.
func (c *Cache) refill(key string, r Recipe) work {
	j := c.refillJob(key, r)
	return func(ctx context.Context) (*Entry, State, error) { return c.attempt(ctx, j) }
}

func (c *Cache) refillJob(key string, r Recipe) job {
	return job{
		key: key, state: Miss,
		enough: func(found *Entry) bool { return found.fresh(c.now()) },
		do: func(ctx context.Context, _ *Entry) (Filled, error) {
			filled, err := r.Fill(ctx)
			if err == nil {
				c.date(&filled, r.TTL)
			}
			return filled, err
		},
	}
}

// renew is the work for a caller with a fresh entry whose rates are old: one attempt, or errBusy.
func (c *Cache) renew(key string, old *Entry, r Recipe) work {
	j := job{
		key: key, known: old, state: Hit,
		enough: func(found *Entry) bool { return found.fresh(c.now()) && !found.ratesOld(c.now()) },
		do: func(ctx context.Context, found *Entry) (Filled, error) {
			if !found.fresh(c.now()) {
				return Filled{}, errBusy // gone since it was read: renewing would put it back
			}
			filled, err := r.Renew(ctx, found)
			filled.FreshUntil, filled.KeptUntil, filled.since = found.FreshUntil, found.KeptUntil, found.since
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
		return c.lead(ctx, j, nil, j.known)
	case found != nil && j.enough(found):
		l.release(ctx)
		return found, Hit, nil
	case l == nil:
		return c.instead(found, errBusy)
	}
	return c.lead(ctx, j, l, found)
}

// lead makes the entry, and stores it when there is a lease.
func (c *Cache) lead(ctx context.Context, j job, l *lease, found *Entry) (*Entry, State, error) {
	parts := &uses{}
	filled, err := run(context.WithValue(ctx, usesKey{}, parts), l, func(ctx context.Context) (Filled, error) { return j.do(ctx, found) })
	if err != nil {
		l.release(ctx)
		return c.instead(found, err)
	}
	if l != nil && filled.since == 0 {
		filled.since = l.won
	}
	if filled.TTL < 0 {
		l.release(ctx)
	} else {
		l.store(ctx, &filled, parts)
	}
	return &filled.Entry, j.state, nil
}

// instead answers with what was found, if it is still kept: the callers may not have it, when their own read failed.
func (c *Cache) instead(found *Entry, err error) (*Entry, State, error) {
	switch now := c.now(); {
	case found.fresh(now):
		return found, Hit, nil
	case found != nil && now.Before(found.KeptUntil):
		return found, Stale, nil
	}
	return nil, Miss, err
}

// date says how long what was filled is fresh and kept. Times are whole milliseconds, as they are stored.
func (c *Cache) date(filled *Filled, ttl time.Duration) {
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
		filled.KeptUntil = filled.FreshUntil
		return
	}
	ttl += time.Duration(c.jitter() * float64(ttl) / 10) // so that what was filled together does not grow old together
	filled.FreshUntil = now.Add(ttl)
	filled.KeptUntil = filled.FreshUntil.Add(keepStale)
}
