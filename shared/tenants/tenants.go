// Package tenants owns which tenants are suspended, as a request sees it; it never decides what a suspension means, and
// never writes the record in Postgres.
package tenants

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/singleflight"

	"melmastoon.ghasi.io/bff-consumer/shared/lua"
	"melmastoon.ghasi.io/bff-consumer/shared/redisclient"
)

const (
	snapshotTTL   = 5 * time.Minute        // after which the copy in memory is read again, whatever the version says
	retryInterval = time.Second            // between two looks at Postgres, if it did not answer or Redis would not take the set back
	loadTimeout   = 300 * time.Millisecond // for reading the set anew, wherever it is read
)

// Querier is what is needed of Postgres: a pool, or nil where there is none.
type Querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

// SuspensionCache keeps a copy of the suspended set in memory. With every request Redis is asked by a version whether the copy
// is still right; Postgres has the record, for when Redis lost the set. Safe for concurrent use.
type SuspensionCache struct {
	rdb  redis.UniversalClient
	db   Querier
	keys lua.SuspendedKeys
	now  func() time.Time

	snapshot    atomic.Pointer[SuspendedSet]
	loads       singleflight.Group
	lastFailure atomic.Int64 // Unix ns when Postgres last did not answer, or Redis last would not take the set back
}

// SuspendedSet is the set at one moment. It is never changed.
type SuspendedSet struct {
	members  map[string]struct{}
	version  string    // in Redis; empty: read from Postgres and not put back
	loadedAt time.Time // zero: never
}

// Has reports whether a tenant is suspended, as far as is known.
func (s *SuspendedSet) Has(tenantID string) bool {
	_, ok := s.members[tenantID]
	return ok
}

// Known reports whether the set was ever read. While it is not, nothing may be done that a suspension forbids.
func (s *SuspendedSet) Known() bool { return !s.loadedAt.IsZero() }

// New makes Tenants. db may be nil: then a set that Redis lost is lost.
func New(rdb redis.UniversalClient, db Querier, keys redisclient.Keys, now func() time.Time) *SuspensionCache {
	set := keys.Key("tenant-suspended")
	tagged := "{" + set + "}" // the set's own slot
	t := &SuspensionCache{rdb: rdb, db: db, now: now, keys: lua.SuspendedKeys{
		Set: set, Version: keys.Key(tagged, "version"), RestoreToken: keys.Key(tagged, "restorer"),
	}}
	t.snapshot.Store(&SuspendedSet{})
	return t
}

// Enqueue queues the question whether the copy is still right on the caller's pipeline.
func (t *SuspensionCache) Enqueue(ctx context.Context, pipe redis.Pipeliner) *redis.StringCmd {
	return pipe.Get(ctx, t.keys.Version)
}

// Preload makes the copy from Redis before anybody asks, for a process that begins; it waits as long as a command of Redis
// may. A set that Redis lost is no error, and is left to the first who asks.
func (t *SuspensionCache) Preload(ctx context.Context) error {
	_, err := t.loadRedis(ctx)
	if errors.Is(err, redis.Nil) {
		return nil
	}
	return err
}

// Resolve returns the set, once the pipeline of Peek has run: the copy, unless Redis says that it is not right any more
// or has lost the set; then one caller reads it anew while the others wait, at most 300 ms and their own context. What
// cannot be read leaves the copy as it is. With Redis away the copy stands for five minutes; then, or if there is none
// yet, Postgres is asked, at most once a second while it does not answer. It never fails: what it does not know, Known
// says.
func (t *SuspensionCache) Resolve(ctx context.Context, peeked *redis.StringCmd) *SuspendedSet {
	version, err := peeked.Result()
	copied := t.snapshot.Load()
	lost := errors.Is(err, redis.Nil)
	switch {
	case err == nil && version == copied.version && t.isRecent(copied),
		err != nil && !lost && t.isRecent(copied):
		return copied
	}
	// Readers of different versions do not share: the later one would get what the earlier saw.
	read := t.loads.DoChan(version, func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), loadTimeout)
		defer cancel()
		return t.load(ctx, err == nil, lost)
	})
	select {
	case r := <-read:
		if r.Err == nil {
			return r.Val.(*SuspendedSet)
		}
	case <-ctx.Done():
	}
	return t.snapshot.Load()
}

func (t *SuspensionCache) isRecent(s *SuspendedSet) bool {
	return t.now().Sub(s.loadedAt) < snapshotTTL
}

// Suspend tells Redis that a tenant is suspended, so that every instance reads the set anew with its next request. The
// record in Postgres is the caller's, and is written first. With Redis away it fails, to be repeated.
func (t *SuspensionCache) Suspend(ctx context.Context, tenantID string) error {
	_, err := lua.Suspend(ctx, t.rdb, t.keys, tenantID)
	return err
}

// Reinstate is the inverse of Suspend.
func (t *SuspensionCache) Reinstate(ctx context.Context, tenantID string) error {
	_, err := lua.Reinstate(ctx, t.rdb, t.keys, tenantID)
	return err
}
