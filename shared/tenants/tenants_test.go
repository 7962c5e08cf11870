package tenants

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/redis/go-redis/v9"

	"melmastoon.ghasi.io/bff-consumer/shared/id"
	"melmastoon.ghasi.io/bff-consumer/shared/keyspace"
	"melmastoon.ghasi.io/bff-consumer/shared/pgtest"
	"melmastoon.ghasi.io/bff-consumer/shared/redistest"
)

// desk is one instance's view, with a clock that tests move.
type desk struct {
	*Tenants
	db   *pgxpool.Pool
	time time.Time
}

func newDesk(t *testing.T, rdb redis.UniversalClient, db Querier) *desk {
	d := &desk{time: time.Now()}
	d.Tenants = New(rdb, db, keyspace.Keys{Env: "test"}, func() time.Time { return d.time })
	return d
}

// ask does what admission does.
func (d *desk) ask() *Suspended {
	ctx := context.Background()
	pipe := d.rdb.Pipeline()
	peeked := d.Peek(ctx, pipe)
	pipe.Exec(ctx)
	return d.Settle(ctx, peeked)
}

// record writes what the consumer of tenant.suspended.v1 commits before it tells Redis.
func record(t *testing.T, db *pgxpool.Pool, tenant string) {
	t.Helper()
	uuid, err := id.UUID(id.Tenant, tenant)
	if err != nil {
		t.Fatal(err)
	}
	_, err = db.Exec(t.Context(), `
		INSERT INTO bff_consumer.tenant_suspended_cache (tenant_id, suspended_at, reason)
		VALUES ($1, now(), 'test')`, uuid)
	if err != nil {
		t.Fatal(err)
	}
}

const (
	first  = "tnt_00000000000000000000000001"
	second = "tnt_00000000000000000000000002"
)

func TestASuspensionIsSeenWithTheNextRequest(t *testing.T) {
	rdb, db := redistest.New(t), pgtest.New(t)
	a, b := newDesk(t, rdb, db), newDesk(t, rdb, db)
	if s := a.ask(); !s.Known() || s.Has(first) {
		t.Fatalf("at first %+v", s)
	}
	record(t, db, first)
	if err := b.Suspend(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	if !a.ask().Has(first) {
		t.Error("another instance does not see the suspension")
	}
	if err := b.Reinstate(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	if a.ask().Has(first) {
		t.Error("another instance does not see the reinstatement")
	}
}

func TestALostSetIsRestoredFromTheRecord(t *testing.T) {
	rdb, db := redistest.New(t), pgtest.New(t)
	d := newDesk(t, rdb, db)
	d.ask()
	record(t, db, first)
	rdb.FlushAll(t.Context())
	d.time = d.time.Add(2 * time.Second)
	if !d.ask().Has(first) {
		t.Error("the set was not restored")
	}
	if !rdb.SIsMember(t.Context(), d.keys.Set, first).Val() {
		t.Error("not in Redis")
	}
}

func TestAChangeOfALostSetLosesNobody(t *testing.T) {
	rdb, db := redistest.New(t), pgtest.New(t)
	d := newDesk(t, rdb, db)
	record(t, db, first)
	record(t, db, second)
	if err := d.Suspend(t.Context(), second); err != nil { // Redis knows neither
		t.Fatal(err)
	}
	if s := d.ask(); !s.Has(first) || !s.Has(second) {
		t.Error("a suspended tenant is missing")
	}
}

func TestARestoreFromAnOldRecordLosesNoSuspension(t *testing.T) {
	rdb, db := redistest.New(t), pgtest.New(t)
	late := &slowQuerier{Querier: db, read: make(chan struct{}), go_: make(chan struct{})}
	reader, writer := newDesk(t, rdb, late), newDesk(t, rdb, db)
	done := make(chan *Suspended)
	go func() { done <- reader.ask() }()
	<-late.read // the reader has the record as it was
	record(t, db, first)
	if err := writer.Suspend(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	close(late.go_)
	<-done
	if !reader.ask().Has(first) {
		t.Error("the suspension was overwritten by an older record")
	}
}

// slowQuerier answers with what Postgres said, later.
type slowQuerier struct {
	Querier
	read, go_ chan struct{}
	once      sync.Once
}

func (s *slowQuerier) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	rows, err := s.Querier.Query(ctx, sql, args...)
	s.once.Do(func() {
		close(s.read)
		<-s.go_
	})
	return rows, err
}

func TestTheCopyOutlivesRedisAndPostgres(t *testing.T) {
	server := redistest.Server(t)
	url, proxy := pgtest.Behind(t)
	db, err := pgxpool.New(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { proxy.Heal(); db.Close() })
	d := newDesk(t, server.Client(), db)
	record(t, db, first)
	d.ask()
	server.Stop()
	proxy.Break()
	d.time = d.time.Add(time.Hour)
	if s := d.ask(); !s.Known() || !s.Has(first) {
		t.Errorf("forgotten: %+v", s)
	}
	blind := newDesk(t, d.rdb, db)
	if blind.ask().Known() {
		t.Error("an instance that reached neither store claims to know")
	}
	server.Start()
	proxy.Heal()
	blind.time = blind.time.Add(2 * time.Second)
	if s := blind.ask(); !s.Known() || !s.Has(first) {
		t.Errorf("not read when the stores came back: %+v", s)
	}
}

func TestWithoutRedisTheRecordIsReadAnewAfterFiveMinutes(t *testing.T) {
	server, db := redistest.Server(t), pgtest.New(t)
	d := newDesk(t, server.Client(), db)
	d.ask()
	server.Stop()
	record(t, db, first)
	if d.ask().Has(first) {
		t.Fatal("the copy is young, yet it was read anew")
	}
	d.time = d.time.Add(copyLife)
	if !d.ask().Has(first) {
		t.Error("the suspension is in the record and was not seen")
	}
}

func TestWithoutRedisAndPostgresTheCopyStandsAndPostgresIsAskedOnceASecond(t *testing.T) {
	server := redistest.Server(t)
	rdb, db := server.Client(), &deaf{}
	d := newDesk(t, rdb, db)
	rdb.SAdd(t.Context(), d.keys.Set, whole, first)
	rdb.Set(t.Context(), d.keys.Version, "1", 0)
	d.ask()
	server.Stop()
	d.time = d.time.Add(copyLife)
	for range 10 {
		if !d.ask().Has(first) {
			t.Fatal("the copy was forgotten")
		}
	}
	if db.asked != 1 {
		t.Errorf("asked %d times within a second", db.asked)
	}
}

func TestASetThatRedisEvictedIsRestored(t *testing.T) {
	for name, change := range map[string]func(*desk) error{
		"evicted":                       func(*desk) error { return nil },
		"evicted, and changed after it": func(d *desk) error { return d.Suspend(context.Background(), second) },
	} {
		t.Run(name, func(t *testing.T) {
			rdb, db := redistest.New(t), pgtest.New(t)
			d := newDesk(t, rdb, db)
			record(t, db, first)
			record(t, db, second)
			d.ask()
			rdb.Del(t.Context(), d.keys.Set) // its version stays
			if err := change(d); err != nil {
				t.Fatal(err)
			}
			if s := newDesk(t, rdb, db).ask(); !s.Has(first) || !s.Has(second) {
				t.Error("a suspended tenant is missing")
			}
			if !rdb.SIsMember(t.Context(), d.keys.Set, first).Val() {
				t.Error("not restored")
			}
		})
	}
}

func TestWithoutRedisTheRecordIsEnough(t *testing.T) {
	server, db := redistest.Server(t), pgtest.New(t)
	record(t, db, first)
	server.Stop()
	if s := newDesk(t, server.Client(), db).ask(); !s.Known() || !s.Has(first) {
		t.Errorf("%+v", s)
	}
}

func TestTheCopyIsReadAnewAfterFiveMinutes(t *testing.T) {
	rdb, db := redistest.New(t), pgtest.New(t)
	d := newDesk(t, rdb, db)
	d.ask()
	rdb.SAdd(t.Context(), d.keys.Set, first) // without a new version: somebody repaired the set by hand
	if d.ask().Has(first) {
		t.Fatal("the version is not what decides")
	}
	d.time = d.time.Add(copyLife)
	if !d.ask().Has(first) {
		t.Error("the copy is older than five minutes")
	}
}
