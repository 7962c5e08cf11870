// Package tenants owns which tenants are suspended, as the request path sees it. It never decides what
// a suspension means.
package tenants

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/redis/go-redis/v9"

	"melmastoon.ghasi.io/bff-consumer/shared/id"
	"melmastoon.ghasi.io/bff-consumer/shared/keyspace"
	"melmastoon.ghasi.io/bff-consumer/shared/lua"
)

const (
	copyLife = 5 * time.Minute // after which the copy in memory is read again, whatever the version says
	pause    = time.Second     // between two looks at a store that did not answer
	patience = 150 * time.Millisecond
)

// Querier is what is needed of Postgres.
type Querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

// Tenants keeps a copy of the suspended set in memory. Redis is asked with every request whether the copy
// is still right, by a version; Postgres has the record, for when Redis lost the set. Safe for
// concurrent use.
type Tenants struct {
	rdb  redis.UniversalClient
	db   Querier
	keys keyspace.Keys
	now  func() time.Time

	current atomic.Pointer[Suspended]
	mu      sync.Mutex // one goroutine reads the set anew
	tried   time.Time
}

// Suspended is the set at one moment.
type Suspended struct {
	members map[string]bool
	version string
	read    time.Time
	known   bool
}

// Has says whether a tenant is suspended, as far as is known.
func (s *Suspended) Has(tenantID string) bool { return s.members[tenantID] }

// Known says whether the set was ever read. While it is not, nothing may be done that a suspension forbids.
func (s *Suspended) Known() bool { return s.known }

// New makes Tenants.
func New(rdb redis.UniversalClient, db Querier, keys keyspace.Keys, now func() time.Time) *Tenants {
	t := &Tenants{rdb: rdb, db: db, keys: keys, now: now}
	t.current.Store(&Suspended{})
	return t
}

func (t *Tenants) set() string { return t.keys.Key("tenant-suspended") }

// version shares the set's slot: its hash tag is the set's whole key.
func (t *Tenants) version() string { return t.keys.Key("{"+t.set()+"}", "version") }

// Peek queues the question whether the copy is still right on the caller's pipeline.
func (t *Tenants) Peek(ctx context.Context, pipe redis.Pipeliner) *redis.StringCmd {
	return pipe.Get(ctx, t.version())
}

// Settle returns the set of now, once the pipeline of Peek has run. A copy that is not right any more is
// read anew, by one caller at a time, within 300 ms; the others, and that one when it fails, get the
// copy. When Redis is away the copy stays.
func (t *Tenants) Settle(ctx context.Context, peeked *redis.StringCmd) *Suspended {
	copied := t.current.Load()
	version, err := peeked.Result()
	lost := err == redis.Nil
	away := err != nil && !lost
	switch {
	case away && copied.known:
		return copied
	case !away && !lost && copied.known && copied.version == version && t.now().Sub(copied.read) < copyLife:
		return copied
	}
	if !t.mu.TryLock() {
		if copied.known {
			return copied
		}
		t.mu.Lock() // nothing known yet: better to wait for who is reading than to show a suspended tenant
	}
	defer t.mu.Unlock()
	if again := t.current.Load(); again != copied {
		return again // somebody read it while this caller waited
	}
	if (away || lost) && t.now().Sub(t.tried) < pause {
		return copied
	}
	t.tried = t.now()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*patience)
	defer cancel()
	fresh := t.read(ctx, away, lost)
	if fresh == nil {
		return copied
	}
	t.current.Store(fresh)
	return fresh
}

// read is the set from Redis, or from Postgres when Redis lost it or is away; nil when neither answers.
func (t *Tenants) read(ctx context.Context, away, lost bool) *Suspended {
	if !away && !lost {
		if members, version, ok := t.fromRedis(ctx); ok {
			return t.made(members, version)
		}
	}
	members, err := t.fromPostgres(ctx)
	if err != nil {
		return nil
	}
	if away {
		return t.made(members, "")
	}
	version, err := lua.SuspendedRestore(ctx, t.rdb, t.set(), t.version(), members)
	if err != nil {
		return t.made(members, "")
	}
	// Between the read of Postgres and the restore an event may have written the set: what stands there counts.
	if members, version, ok := t.fromRedis(ctx); ok {
		return t.made(members, version)
	}
	return t.made(members, version)
}

func (t *Tenants) made(members []string, version string) *Suspended {
	s := &Suspended{members: make(map[string]bool, len(members)), version: version, read: t.now(), known: true}
	for _, m := range members {
		s.members[m] = true
	}
	return s
}

// fromRedis reads version and set together; ok is false when the version is gone, because then the set
// means nothing.
func (t *Tenants) fromRedis(ctx context.Context) (members []string, version string, ok bool) {
	pipe := t.rdb.TxPipeline()
	v, m := pipe.Get(ctx, t.version()), pipe.SMembers(ctx, t.set())
	if _, err := pipe.Exec(ctx); err != nil {
		return nil, "", false
	}
	return m.Val(), v.Val(), true
}

func (t *Tenants) fromPostgres(ctx context.Context) ([]string, error) {
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

// Suspend and Reinstate change the set in Redis and its version, so that every instance reads it anew with
// its next request. The record in Postgres is the caller's, and is written first.
func (t *Tenants) Suspend(ctx context.Context, tenantID string) error {
	return lua.SuspendedChange(ctx, t.rdb, t.set(), t.version(), "SADD", tenantID)
}

// Reinstate is the inverse of Suspend.
func (t *Tenants) Reinstate(ctx context.Context, tenantID string) error {
	return lua.SuspendedChange(ctx, t.rdb, t.set(), t.version(), "SREM", tenantID)
}
