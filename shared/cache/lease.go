package cache

import (
	"context"
	"crypto/rand"
	"errors"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"melmastoon.ghasi.io/bff-consumer/shared/lua"
	"melmastoon.ghasi.io/bff-consumer/shared/redisclient"
)

const (
	// leaseTTL is how long a lock outlives a dead process: short enough for a waiting process to
	// take over within the 2.5 s of a request. The owner extends the lock every extendInterval and
	// holds the lock only during a flight, less than the permitted 5 s.
	leaseTTL       = time.Second
	extendInterval = 250 * time.Millisecond
	// pollInterval is how often the flight of a waiting process tries the lock.
	pollInterval = 25 * time.Millisecond
)

// lease is the right to store an entry, until the lock expires or an invalidation deletes the lock.
// On a nil lease, for a flight without Redis, every method is a no-op.
type lease struct {
	c          *Cache
	key        string
	lock       string
	token      string
	acquiredAt int64 // server time, µs; data invalidated later may be in the load
}

// acquire tries once to get the lease of key: 1 round trip, repeated for up to 400 ms on failure. l
// is nil if another process holds the lease. found is the stored entry, or nil.
func (c *Cache) acquire(ctx context.Context, key string) (l *lease, found *Entry, err error) {
	l = &lease{c: c, key: key, lock: c.keys.Lock(key), token: c.instanceID + "/" + rand.Text()}
	var result lua.AcquireResult
	err = retryRedis(ctx, func(ctx context.Context) error {
		result, err = lua.Acquire(ctx, c.rdb, l.lock, key, l.token, leaseTTL)
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	found, _ = decode([]byte(result.Entry))
	if !result.Acquired {
		return nil, found, nil
	}
	l.acquiredAt = result.ServerTime
	return l, found, nil
}

// extend renews the lease, within 200 ms. The result does not matter, because store checks the
// lock.
func (l *lease) extend(ctx context.Context) {
	if l == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), attemptTimeout)
	defer cancel()
	lua.Extend(ctx, l.c.rdb, l.lock, l.token, leaseTTL)
}

// release deletes the lock, within 200 ms. After a failure the lock expires.
func (l *lease) release(ctx context.Context) {
	if l == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), attemptTimeout)
	defer cancel()
	lua.Release(ctx, l.c.rdb, l.lock, l.token)
}

// store writes the entry to Redis and ends the lease, in 2 round trips, repeated for up to 400 ms
// in all on failure. The tags come first. A later invalidation then finds the entry in the tags and
// deletes the lock or the entry; register reports an earlier invalidation since the lease began. A
// failure leaves the entry unstored.
func (l *lease) store(ctx context.Context, loaded *Loaded) {
	if l == nil {
		return
	}
	stored := false
	err := retryRedis(ctx, func(ctx context.Context) error {
		ttl := loaded.ExpiresAt.Sub(l.c.now())
		current, err := l.register(ctx, loaded)
		if err == nil && current && ttl >= time.Millisecond {
			stored, err = lua.Store(ctx, l.c.rdb, l.key, l.lock, l.token, loaded.encode(), ttl)
		}
		return err
	})
	if !stored && !redisclient.IsUnavailable(err) {
		l.release(ctx)
	}
}

// register adds the entry to the tags, in 1 round trip, or 0 without tags. current is false if a
// tag was invalidated since the lease began, or since the load of a dependency with this tag began.
func (l *lease) register(ctx context.Context, loaded *Loaded) (current bool, err error) {
	tags := slices.Compact(slices.Sorted(slices.Values(loaded.Tags)))
	if len(tags) == 0 {
		return true, nil
	}
	pipe := l.c.rdb.Pipeline()
	registered := make([]interface{ Int64() (int64, error) }, len(tags))
	for i, tag := range tags {
		registered[i] = lua.Register(ctx, pipe, l.c.tagKeys(tag), l.key, l.c.now(), loaded.ExpiresAt)
	}
	if err := lua.Exec(ctx, pipe); err != nil {
		return false, err
	}
	oldest := oldestByTag(loaded.DependsOn)
	for i, r := range registered {
		startedAt := l.acquiredAt
		if part, known := oldest[tags[i]]; known {
			startedAt = min(part, startedAt)
		}
		if invalidatedAt, _ := r.Int64(); invalidatedAt > 0 && invalidatedAt >= startedAt {
			return false, nil
		}
	}
	return true, nil
}

const (
	retryTimeout   = 400 * time.Millisecond // all attempts of a step
	attemptTimeout = 200 * time.Millisecond // a single attempt
	retryInterval  = 25 * time.Millisecond  // pause between attempts
)

// retryRedis repeats step until success, for up to retryTimeout: a short failure of Redis would
// otherwise cost an upstream call in every process. It gives up at once on a permanent refusal and
// on redisclient.ErrUnavailable. Cancelling ctx has no effect. The deadline of ctx bounds the load;
// retryRedis may exceed this deadline by half the headroom, and leaves the other half to write the
// response.
func retryRedis(ctx context.Context, step func(context.Context) error) error {
	end := time.Now().Add(retryTimeout)
	if deadline, ok := ctx.Deadline(); ok && deadline.Add(headroom/2).Before(end) {
		end = deadline.Add(headroom / 2)
	}
	ctx, cancel := context.WithDeadline(context.WithoutCancel(ctx), end)
	defer cancel()
	for {
		try, cancel := context.WithTimeout(ctx, attemptTimeout)
		err := step(try)
		cancel()
		if err == nil || errors.Is(err, redisclient.ErrUnavailable) || isPermanent(err) {
			return err
		}
		select {
		case <-time.After(retryInterval):
		case <-ctx.Done():
			return err
		}
	}
}

// transientPrefixes are the prefixes of short-lived error replies.
var transientPrefixes = []string{"LOADING", "TRYAGAIN", "CLUSTERDOWN"}

// isPermanent reports whether err is an error reply to every retry: out of memory, wrong type,
// read-only replica.
func isPermanent(err error) bool {
	_, reply := errors.AsType[redis.Error](err)
	return reply && !slices.ContainsFunc(transientPrefixes, func(code string) bool { return redis.HasErrorPrefix(err, code) })
}
