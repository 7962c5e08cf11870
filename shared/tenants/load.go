package tenants

import (
	"context"
	"crypto/rand"
	"errors"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/redis/go-redis/v9"

	"melmastoon.ghasi.io/bff-consumer/shared/id"
	"melmastoon.ghasi.io/bff-consumer/shared/lua"
)

var errPostgresUnavailable = errors.New("tenants: Postgres is not available")

// completeMarker is a member of every restored set, beside the tenants. A set without the marker is
// incomplete: Redis evicted the set but not the version, and a later Suspend created the set again.
const completeMarker = "whole"

// restoreTTL is the life of a restore token. The limit keeps a reader from restoring the set with
// old data.
const restoreTTL = 10 * time.Second

// load reads the set from Redis if Redis has it, else from Postgres. hasVersion means that Redis
// returned a version, lost that Redis has no version. Both are false if Redis did not answer.
func (t *SuspensionCache) load(ctx context.Context, hasVersion, lost bool) (*SuspendedSet, error) {
	if hasVersion {
		s, err := t.loadRedis(ctx)
		if lost = errors.Is(err, redis.Nil); err == nil || !lost && t.isRecent(t.snapshot.Load()) {
			return s, err
		}
	}
	return t.loadPostgres(ctx, lost)
}

// loadRedis reads the version and the set in one transaction and one round trip. If Redis lost
// either, loadRedis returns redis.Nil. A version without a complete set is deleted, because
// RestoreSuspended rejects a restore while a version exists.
func (t *SuspensionCache) loadRedis(ctx context.Context) (*SuspendedSet, error) {
	pipe := t.rdb.TxPipeline()
	version, members := pipe.Get(ctx, t.keys.Version), pipe.SMembers(ctx, t.keys.Set)
	if _, err := pipe.Exec(ctx); err != nil {
		return nil, err
	}
	if !slices.Contains(members.Val(), completeMarker) {
		// if Del fails, the restore is rejected and the next request tries again
		t.rdb.Del(ctx, t.keys.Version)
		return nil, redis.Nil
	}
	return t.setSnapshot(members.Val(), version.Val()), nil
}

// loadPostgres reads the set from Postgres in one query. With restore the set is also written to
// Redis: a round trip before the query sets a restore token, and a script after the query writes
// the set. A change between the two revokes the token, so the script rejects the outdated set and
// the next request reads again. If the query or a write to Redis fails, loadPostgres fails for
// retryInterval without a query.
func (t *SuspensionCache) loadPostgres(ctx context.Context, restore bool) (*SuspendedSet, error) {
	failed := time.Unix(0, t.lastFailure.Load())
	if t.db == nil || t.now().Sub(failed) < retryInterval {
		return nil, errPostgresUnavailable
	}
	token := rand.Text()
	var restoreErr error
	if restore {
		restoreErr = t.rdb.Set(ctx, t.keys.RestoreToken, token, restoreTTL).Err()
	}
	members, err := t.query(ctx)
	if err != nil {
		t.lastFailure.Store(t.now().UnixNano())
		return nil, err
	}
	version := ""
	if restore && restoreErr == nil { // a rejected restore returns no error, and the next request tries again
		version, restoreErr = lua.RestoreSuspended(ctx, t.rdb, t.keys, token, append(members, completeMarker))
	}
	if restoreErr != nil {
		t.lastFailure.Store(t.now().UnixNano())
	}
	return t.setSnapshot(members, version), nil
}

// query reads the ids of all suspended tenants from Postgres.
func (t *SuspensionCache) query(ctx context.Context) ([]string, error) {
	rows, err := t.db.Query(ctx, `
		SELECT tenant_id
		FROM bff_consumer.tenant_suspended_cache`)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (string, error) {
		var uuid [16]byte
		err := row.Scan(&uuid)
		return id.FromUUID(id.Tenant, uuid), err
	})
}

// setSnapshot replaces the set in memory.
func (t *SuspensionCache) setSnapshot(members []string, version string) *SuspendedSet {
	s := &SuspendedSet{members: make(map[string]struct{}, len(members)), version: version, loadedAt: t.now()}
	for _, m := range members {
		s.members[m] = struct{}{}
	}
	t.snapshot.Store(s)
	return s
}
