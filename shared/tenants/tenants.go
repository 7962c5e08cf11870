// Package tenants tells a request which tenants are suspended. The record is in Postgres; Redis and
// each process have a copy. The package does not decide the effect of a suspension and never writes
// the record in Postgres.
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
	snapshotTTL = 5 * time.Minute // then the set is read again, even if its version has not changed
	// between two reads of Postgres after Postgres or the write to Redis failed
	retryInterval = time.Second
	loadTimeout   = 300 * time.Millisecond // for reading the set again, from Redis and Postgres together
)

// Querier is the part of a Postgres pool that this package uses.
type Querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

// SuspensionCache keeps the set of suspended tenants in memory. Every request compares the version
// of the set in memory with the version in Redis, so a change is visible to the next request of
// every instance. A set that Redis lost is restored from Postgres. Safe for concurrent use.
type SuspensionCache struct {
	rdb  redis.UniversalClient
	db   Querier
	keys lua.SuspendedKeys
	now  func() time.Time

	snapshot    atomic.Pointer[SuspendedSet]
	loads       singleflight.Group
	lastFailure atomic.Int64 // Unix ns of the last failed read of Postgres or failed write to Redis
}

// SuspendedSet is an immutable set of the suspended tenants.
type SuspendedSet struct {
	members  map[string]struct{}
	version  string    // version in Redis; empty if read from Postgres and not written to Redis
	loadedAt time.Time // zero if the set was never read
}

// Has reports whether a tenant is suspended, by the last set that could be read. Has is false while
// Known is false, and for any unknown text. A map read; it never fails.
func (s *SuspendedSet) Has(tenantID string) bool {
	_, ok := s.members[tenantID]
	return ok
}

// Known reports whether the set was ever read. While Known is false, the caller must refuse every
// action that a suspension forbids. The set may be old: without Redis and Postgres its age has no
// limit. Known never fails.
func (s *SuspendedSet) Known() bool { return !s.loadedAt.IsZero() }

// New returns a SuspensionCache with a set that is not Known; it does not dial and never fails. db
// may be nil: then a set that Redis lost is not restored. rdb, keys and now are required.
func New(rdb redis.UniversalClient, db Querier, keys redisclient.Keys, now func() time.Time) *SuspensionCache {
	set := keys.Key("tenant-suspended")
	tagged := "{" + set + "}" // in the slot of the set
	t := &SuspensionCache{rdb: rdb, db: db, now: now, keys: lua.SuspendedKeys{
		Set: set, Version: keys.Key(tagged, "version"), RestoreToken: keys.Key(tagged, "restorer"),
	}}
	t.snapshot.Store(&SuspendedSet{})
	return t
}

// Enqueue queues the read of the set's version, one GET, on the caller's pipeline. It does no I/O
// and never fails. Pass the command to Resolve after the pipeline has run. An absent version
// (redis.Nil) is no failure of the pipeline.
func (t *SuspensionCache) Enqueue(ctx context.Context, pipe redis.Pipeliner) *redis.StringCmd {
	return pipe.Get(ctx, t.keys.Version)
}

// Preload reads the set from Redis before the first request, for a process that starts. The cost is
// a round trip, and a second that deletes the version if the set is incomplete. Both are bounded by
// ctx and the timeouts of the Redis client; Postgres is not read and no lock is taken. A set that
// Redis lost is not an error: the first request restores the set. Without Redis, with a cancelled
// ctx or after an error reply, Preload returns the error of the client, and the set in memory
// stays; a failed deletion is ignored. Preload may be repeated.
func (t *SuspensionCache) Preload(ctx context.Context) error {
	_, err := t.loadRedis(ctx)
	if errors.Is(err, redis.Nil) {
		return nil
	}
	return err
}

// Resolve returns the set of suspended tenants. Call Resolve after the pipeline of Enqueue has run,
// with the command of Enqueue, which must not be nil. Resolve never fails and never returns nil;
// SuspendedSet.Known tells whether the set was ever read.
//
// Without a change Resolve returns the set in memory and costs no round trip and no lock. If Redis
// has another version or has lost the set, or if the set in memory is older than five minutes, one
// caller reads the set again: from Redis in one round trip, or from Postgres in one query.
// Restoring a lost set takes two more round trips to Redis, or four if Redis still has a version,
// and one more if the server does not know the script. Concurrent callers with the same version
// wait for the result, at most 300 ms and at most until their context ends; the read goes on
// without them. A mutex of the process is held only to join the read. If the read fails or the
// context ends first, Resolve returns the set in memory.
//
// Without Redis the set in memory is used for five minutes; then, or without a set, Resolve reads
// Postgres. After a failure an instance reads Postgres at most once a second. Without Redis and
// Postgres the last set is used without a time limit.
func (t *SuspensionCache) Resolve(ctx context.Context, queued *redis.StringCmd) *SuspendedSet {
	version, err := queued.Result()
	current := t.snapshot.Load()
	lost := errors.Is(err, redis.Nil)
	switch {
	case err == nil && version == current.version && t.isRecent(current),
		err != nil && !lost && t.isRecent(current):
		return current
	}
	// The version is the key of the single flight: a reader that saw a later version must not share
	// the result of a read that started for an earlier version.
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

// isRecent reports whether a set was read less than snapshotTTL ago.
func (t *SuspensionCache) isRecent(s *SuspendedSet) bool {
	return t.now().Sub(s.loadedAt) < snapshotTTL
}

// Suspend adds a tenant to the set in Redis and changes the version, so that every instance reads
// the set again with its next request. The caller writes the record in Postgres first. Suspend runs
// one script in one round trip, or two if the server does not have the script yet; the client and
// ctx set the time limit. The call may be repeated and changes the version each time. If Redis has
// lost the set, Suspend succeeds without a change: the next request restores the set from Postgres.
// Without Redis, with a cancelled ctx or after an error reply, Suspend returns an error, and the
// caller must repeat the call; after a timeout the change may have been made. tenantID is not
// checked.
func (t *SuspensionCache) Suspend(ctx context.Context, tenantID string) error {
	_, err := lua.Suspend(ctx, t.rdb, t.keys, tenantID)
	return err
}

// Reinstate removes a tenant from the set in Redis and changes the version, also if the tenant was
// not in the set. Costs and failures are those of Suspend.
func (t *SuspensionCache) Reinstate(ctx context.Context, tenantID string) error {
	_, err := lua.Reinstate(ctx, t.rdb, t.keys, tenantID)
	return err
}
