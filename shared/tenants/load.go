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

var errPostgresUnavailable = errors.New("tenants: the record cannot be read")

// completeMarker is a member beside the tenants of every set that was restored. A set without it is what became of one that
// Redis evicted without its version.
const completeMarker = "whole"

// restoreTTL bounds the right to restore the set, so that nobody restores it with what was read long ago.
const restoreTTL = 10 * time.Second

// load makes a new copy: from Redis when it has the set, else from the record. Redis has neither set nor lost it when
// it is away.
func (t *SuspensionCache) load(ctx context.Context, has, lost bool) (*SuspendedSet, error) {
	if has {
		s, err := t.loadRedis(ctx)
		if lost = errors.Is(err, redis.Nil); err == nil || !lost && t.isRecent(t.snapshot.Load()) {
			return s, err
		}
	}
	return t.loadPostgres(ctx, lost)
}

// loadRedis reads version and set as one; redis.Nil when one of them was lost. A version without its set is taken away,
// because it says that there is nothing to restore.
func (t *SuspensionCache) loadRedis(ctx context.Context) (*SuspendedSet, error) {
	pipe := t.rdb.TxPipeline()
	version, members := pipe.Get(ctx, t.keys.Version), pipe.SMembers(ctx, t.keys.Set)
	if _, err := pipe.Exec(ctx); err != nil {
		return nil, err
	}
	if !slices.Contains(members.Val(), completeMarker) {
		t.rdb.Del(ctx, t.keys.Version) // if it fails, restoring is refused, and the next request tries
		return nil, redis.Nil
	}
	return t.setSnapshot(members.Val(), version.Val()), nil
}

// loadPostgres reads the set from Postgres and, if Redis lost it, puts it back there. The right to do so is taken before
// reading: a change that comes in between takes it away, and the next request reads again. A Redis that cannot be
// written to is tried again after the pause.
func (t *SuspensionCache) loadPostgres(ctx context.Context, restore bool) (*SuspendedSet, error) {
	failed := time.Unix(0, t.lastFailure.Load())
	if t.db == nil || t.now().Sub(failed) < retryInterval {
		return nil, errPostgresUnavailable
	}
	token := rand.Text()
	var unwritten error
	if restore {
		unwritten = t.rdb.Set(ctx, t.keys.RestoreToken, token, restoreTTL).Err()
	}
	members, err := t.query(ctx)
	if err != nil {
		t.lastFailure.Store(t.now().UnixNano())
		return nil, err
	}
	version := ""
	if restore && unwritten == nil { // if it is refused, the set is still lost and the next request tries
		version, unwritten = lua.RestoreSuspended(ctx, t.rdb, t.keys, token, append(members, completeMarker))
	}
	if unwritten != nil {
		t.lastFailure.Store(t.now().UnixNano())
	}
	return t.setSnapshot(members, version), nil
}

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

func (t *SuspensionCache) setSnapshot(members []string, version string) *SuspendedSet {
	s := &SuspendedSet{members: make(map[string]struct{}, len(members)), version: version, loadedAt: t.now()}
	for _, m := range members {
		s.members[m] = struct{}{}
	}
	t.snapshot.Store(s)
	return s
}
