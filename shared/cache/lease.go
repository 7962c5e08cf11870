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
	// leaseTTL is how long a lock outlives its owner: short, so that a follower notices a dead leader within its own
	// 2.5 s. Extended every extendEvery, a lock is held no longer than a flight lasts, under the 5 s it may.
	leaseTTL       = time.Second
	extendInterval = 250 * time.Millisecond
	// pollInterval is how often the one flight that follows another process looks.
	pollInterval = 25 * time.Millisecond
)

// lease is the right to store one entry, as long as nobody took it away. On a nil lease, of a flight without Redis,
// everything does nothing.
type lease struct {
	c          *Cache
	key        string
	lock       string
	token      string
	acquiredAt int64 // server's time, µs: what was invalidated later may be in what is being made
}

// acquire tries once to win the lease of key; nil when somebody has it. found is what is stored there now, or nil.
func (c *Cache) acquire(ctx context.Context, key string) (l *lease, found *Entry, err error) {
	l = &lease{c: c, key: key, lock: c.keys.Lock(key), token: c.instanceID + "/" + rand.Text()}
	var got lua.AcquireResult
	err = retryRedis(ctx, func(ctx context.Context) error {
		got, err = lua.Acquire(ctx, c.rdb, l.lock, key, l.token, leaseTTL)
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	found, _ = decode([]byte(got.Entry))
	if !got.Acquired {
		return nil, found, nil
	}
	l.acquiredAt = got.ServerTime
	return l, found, nil
}

// extend renews the lease. What becomes of it does not matter here: storing asks again.
func (l *lease) extend(ctx context.Context) {
	if l == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), attemptTimeout)
	defer cancel()
	lua.Extend(ctx, l.c.rdb, l.lock, l.token, leaseTTL)
}

// release lets the next one try. If it fails, the lock lapses.
func (l *lease) release(ctx context.Context) {
	if l == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), attemptTimeout)
	defer cancel()
	lua.Release(ctx, l.c.rdb, l.lock, l.token)
}

// store keeps what was made and ends the lease. Tags are registered first: an invalidation that comes after that finds
// the entry there and takes lock or entry away; one that came before, but after the lease began, is seen now.
func (l *lease) store(ctx context.Context, filled *Loaded) {
	if l == nil {
		return
	}
	stored := false
	err := retryRedis(ctx, func(ctx context.Context) error {
		life := filled.ExpiresAt.Sub(l.c.now())
		current, err := l.register(ctx, filled)
		if err == nil && current && life >= time.Millisecond {
			stored, err = lua.Store(ctx, l.c.rdb, l.key, l.lock, l.token, filled.encode(), life)
		}
		return err
	})
	if !stored && !redisclient.IsUnavailable(err) {
		l.release(ctx)
	}
}

// register notes under each tag that the entry carries it; false: one of them was invalidated since the lease began, or
// since a part of the entry that carries it was made.
func (l *lease) register(ctx context.Context, filled *Loaded) (current bool, err error) {
	tags := slices.Compact(slices.Sorted(slices.Values(filled.Tags)))
	if len(tags) == 0 {
		return true, nil
	}
	pipe := l.c.rdb.Pipeline()
	noted := make([]interface{ Int64() (int64, error) }, len(tags))
	for i, tag := range tags {
		noted[i] = lua.Register(ctx, pipe, l.c.tagKeys(tag), l.key, l.c.now(), filled.ExpiresAt)
	}
	if err := lua.Exec(ctx, pipe); err != nil {
		return false, err
	}
	oldest := oldestByTag(filled.DependsOn)
	for i, n := range noted {
		startedAt := l.acquiredAt
		if part, known := oldest[tags[i]]; known {
			startedAt = min(part, startedAt)
		}
		if invalidatedAt, _ := n.Int64(); invalidatedAt > 0 && invalidatedAt >= startedAt {
			return false, nil
		}
	}
	return true, nil
}

const (
	retryTimeout   = 400 * time.Millisecond // on a step in Redis that fails
	attemptTimeout = 200 * time.Millisecond // one try of it
	retryInterval  = 25 * time.Millisecond  // after so long
)

// retryRedis takes a step in Redis, again if it fails: a moment's trouble would otherwise cost a call of the upstream in
// every process. It gives up when Redis refuses or is known to be away, and in time for the answer, which is there
// without Redis, to be written. It does not end with the context's own deadline, which is that of the work before it.
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

// transientPrefixes are the refusals that pass by themselves, and soon.
var transientPrefixes = []string{"LOADING", "TRYAGAIN", "CLUSTERDOWN"}

// isPermanent reports a reply of the server that will be the same when asked again: no memory, a wrong type, a replica.
func isPermanent(err error) bool {
	_, reply := errors.AsType[redis.Error](err)
	return reply && !slices.ContainsFunc(transientPrefixes, func(code string) bool { return redis.HasErrorPrefix(err, code) })
}
