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

var errNoRecord = errors.New("tenants: the record cannot be read")

// whole is a member beside the tenants of every set that was restored. A set without it is what became of one that
// Redis evicted without its version.
const whole = "whole"

// restoreLife bounds the right to restore the set, so that nobody restores it with what was read long ago.
const restoreLife = 10 * time.Second

// read makes a new copy: from Redis when it has the set, else from the record. Redis has neither set nor lost it when
// it is away.
func (t *Tenants) read(ctx context.Context, has, lost bool) (*Suspended, error) {
	if has {
		s, err := t.readRedis(ctx)
		if lost = errors.Is(err, redis.Nil); err == nil || !lost && t.young(t.copied.Load()) {
			return s, err
		}
	}
	return t.readRecord(ctx, lost)
}

// readRedis reads version and set as one; redis.Nil when one of them was lost. A version without its set is taken away,
// because it says that there is nothing to restore.
func (t *Tenants) readRedis(ctx context.Context) (*Suspended, error) {
	pipe := t.rdb.TxPipeline()
	version, members := pipe.Get(ctx, t.keys.Version), pipe.SMembers(ctx, t.keys.Set)
	if _, err := pipe.Exec(ctx); err != nil {
		return nil, err
	}
	if !slices.Contains(members.Val(), whole) {
		t.rdb.Del(ctx, t.keys.Version) // if it fails, restoring is refused, and the next request tries
		return nil, redis.Nil
	}
	return t.keep(members.Val(), version.Val()), nil
}

// readRecord reads the set from Postgres and, if Redis lost it, puts it back there. The right to do so is taken before
// reading: a change that comes in between takes it away, and the next request reads again. A Redis that cannot be
// written to is tried again after the pause.
func (t *Tenants) readRecord(ctx context.Context, restore bool) (*Suspended, error) {
	failed := time.Unix(0, t.failed.Load())
	if t.db == nil || t.now().Sub(failed) < pause {
		return nil, errNoRecord
	}
	token := rand.Text()
	var unwritten error
	if restore {
		unwritten = t.rdb.Set(ctx, t.keys.Restorer, token, restoreLife).Err()
	}
	members, err := t.query(ctx)
	if err != nil {
		t.failed.Store(t.now().UnixNano())
		return nil, err
	}
	version := ""
	if restore && unwritten == nil { // if it is refused, the set is still lost and the next request tries
		version, unwritten = lua.RestoreSuspended(ctx, t.rdb, t.keys, token, append(members, whole))
	}
	if unwritten != nil {
		t.failed.Store(t.now().UnixNano())
	}
	return t.keep(members, version), nil
}

func (t *Tenants) query(ctx context.Context) ([]string, error) {
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

func (t *Tenants) keep(members []string, version string) *Suspended {
	s := &Suspended{members: make(map[string]struct{}, len(members)), version: version, read: t.now()}
	for _, m := range members {
		s.members[m] = struct{}{}
	}
	t.copied.Store(s)
	return s
}
