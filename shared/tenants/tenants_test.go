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
	"melmastoon.ghasi.io/bff-consumer/shared/redisclient"
	"melmastoon.ghasi.io/bff-consumer/shared/testkit/pgtest"
	"melmastoon.ghasi.io/bff-consumer/shared/testkit/redistest"
)

// harness is the SuspensionCache of one instance with a manual clock.
type harness struct {
	*SuspensionCache
	db   *pgxpool.Pool
	time time.Time
}

func newHarness(t *testing.T, rdb redis.UniversalClient, db Querier) *harness {
	d := &harness{time: time.Now()}
	d.SuspensionCache = New(rdb, db, redisclient.Keys{Env: "test"}, func() time.Time { return d.time })
	return d
}

// request enqueues and resolves the set, as a request does.
func (d *harness) request() *SuspendedSet {
	ctx := context.Background()
	pipe := d.rdb.Pipeline()
	queued := d.Enqueue(ctx, pipe)
	pipe.Exec(ctx)
	return d.Resolve(ctx, queued)
}

// insertSuspension writes the record that the consumer of tenant.suspended.v1 commits before it
// calls Suspend.
func insertSuspension(t *testing.T, db *pgxpool.Pool, tenant string) {
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
	firstTenant  = "tnt_00000000000000000000000001"
	secondTenant = "tnt_00000000000000000000000002"
)

func TestSuspend_VisibleToNextRequest(t *testing.T) {
	rdb, db := redistest.New(t), pgtest.New(t)
	a, b := newHarness(t, rdb, db), newHarness(t, rdb, db)
	if s := a.request(); !s.Known() || s.Has(firstTenant) {
		t.Fatalf("at first: %+v, want a known set without the tenant", s)
	}
	insertSuspension(t, db, firstTenant)
	if err := b.Suspend(t.Context(), firstTenant); err != nil {
		t.Fatal(err)
	}
	if !a.request().Has(firstTenant) {
		t.Error("another instance does not see the suspension")
	}
	if err := b.Reinstate(t.Context(), firstTenant); err != nil {
		t.Fatal(err)
	}
	if a.request().Has(firstTenant) {
		t.Error("another instance does not see the reinstatement")
	}
}

func TestResolve_RestoresLostSetFromPostgres(t *testing.T) {
	rdb, db := redistest.New(t), pgtest.New(t)
	d := newHarness(t, rdb, db)
	d.request()
	insertSuspension(t, db, firstTenant)
	rdb.FlushAll(t.Context())
	d.time = d.time.Add(2 * time.Second)
	if !d.request().Has(firstTenant) {
		t.Error("the set was not restored")
	}
	if !rdb.SIsMember(t.Context(), d.keys.Set, firstTenant).Val() {
		t.Error("the set was not restored in Redis")
	}
}

func TestSuspend_OnLostSetLosesNoSuspension(t *testing.T) {
	rdb, db := redistest.New(t), pgtest.New(t)
	d := newHarness(t, rdb, db)
	insertSuspension(t, db, firstTenant)
	insertSuspension(t, db, secondTenant)
	if err := d.Suspend(t.Context(), secondTenant); err != nil { // Redis has no set
		t.Fatal(err)
	}
	if s := d.request(); !s.Has(firstTenant) || !s.Has(secondTenant) {
		t.Error("a suspended tenant is missing")
	}
}

func TestResolve_RestoreFromOldReadLosesNoSuspension(t *testing.T) {
	rdb, db := redistest.New(t), pgtest.New(t)
	slow := &slowDB{Querier: db, started: make(chan struct{}), release: make(chan struct{})}
	reader, writer := newHarness(t, rdb, slow), newHarness(t, rdb, db)
	done := make(chan *SuspendedSet)
	go func() { done <- reader.request() }()
	<-slow.started // the reader has read the record before the suspension
	insertSuspension(t, db, firstTenant)
	if err := writer.Suspend(t.Context(), firstTenant); err != nil {
		t.Fatal(err)
	}
	close(slow.release)
	<-done
	if !reader.request().Has(firstTenant) {
		t.Error("an older record overwrote the suspension")
	}
}

// slowDB is a Postgres whose first reply waits until release is closed.
type slowDB struct {
	Querier
	started, release chan struct{}
	once             sync.Once
}

func (s *slowDB) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	rows, err := s.Querier.Query(ctx, sql, args...)
	s.once.Do(func() {
		close(s.started)
		<-s.release
	})
	return rows, err
}

func TestResolve_SnapshotOutlivesRedisAndPostgres(t *testing.T) {
	t.Parallel()
	server := redistest.NewServer(t)
	url, proxy := pgtest.ProxiedURL(t)
	db, err := pgxpool.New(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { proxy.Heal(); db.Close() })
	d := newHarness(t, server.Client(), db)
	insertSuspension(t, db, firstTenant)
	d.request()
	server.Stop()
	proxy.Break()
	d.time = d.time.Add(time.Hour)
	if s := d.request(); !s.Known() || !s.Has(firstTenant) {
		t.Errorf("without stores: %+v, want the last set", s)
	}
	other := newHarness(t, d.rdb, db)
	if other.request().Known() {
		t.Error("known on an instance that never reached a store")
	}
	server.Start()
	proxy.Heal()
	other.time = other.time.Add(2 * time.Second)
	if s := other.request(); !s.Known() || !s.Has(firstTenant) {
		t.Errorf("with the stores again: %+v, want the suspended tenant", s)
	}
}

func TestResolve_WithoutRedisRereadsPostgresAfterFiveMinutes(t *testing.T) {
	t.Parallel()
	server, db := redistest.NewServer(t), pgtest.New(t)
	d := newHarness(t, server.Client(), db)
	d.request()
	server.Stop()
	insertSuspension(t, db, firstTenant)
	if d.request().Has(firstTenant) {
		t.Fatal("the set was read again within five minutes")
	}
	d.time = d.time.Add(snapshotTTL)
	if !d.request().Has(firstTenant) {
		t.Error("the set was not read from Postgres after five minutes")
	}
}

func TestResolve_WithoutStoresKeepsSnapshotAndRetriesEachSecond(t *testing.T) {
	t.Parallel()
	server := redistest.NewServer(t)
	rdb, db := server.Client(), &unresponsiveDB{}
	d := newHarness(t, rdb, db)
	rdb.SAdd(t.Context(), d.keys.Set, completeMarker, firstTenant)
	rdb.Set(t.Context(), d.keys.Version, "1", 0)
	d.request()
	server.Stop()
	d.time = d.time.Add(snapshotTTL)
	for range 10 {
		if !d.request().Has(firstTenant) {
			t.Fatal("the last set was lost")
		}
	}
	if db.queries != 1 {
		t.Errorf("%d queries within a second, want 1", db.queries)
	}
}

func TestResolve_RestoresEvictedSet(t *testing.T) {
	for name, change := range map[string]func(*harness) error{
		"evicted":                        func(*harness) error { return nil },
		"evicted and changed afterwards": func(d *harness) error { return d.Suspend(context.Background(), secondTenant) },
	} {
		t.Run(name, func(t *testing.T) {
			rdb, db := redistest.New(t), pgtest.New(t)
			d := newHarness(t, rdb, db)
			insertSuspension(t, db, firstTenant)
			insertSuspension(t, db, secondTenant)
			d.request()
			rdb.Del(t.Context(), d.keys.Set) // the version stays
			if err := change(d); err != nil {
				t.Fatal(err)
			}
			if s := newHarness(t, rdb, db).request(); !s.Has(firstTenant) || !s.Has(secondTenant) {
				t.Error("a suspended tenant is missing")
			}
			if !rdb.SIsMember(t.Context(), d.keys.Set, firstTenant).Val() {
				t.Error("the set was not restored in Redis")
			}
		})
	}
}

func TestResolve_WithoutRedisReadsPostgres(t *testing.T) {
	t.Parallel()
	server, db := redistest.NewServer(t), pgtest.New(t)
	insertSuspension(t, db, firstTenant)
	server.Stop()
	if s := newHarness(t, server.Client(), db).request(); !s.Known() || !s.Has(firstTenant) {
		t.Errorf("%+v, want the suspended tenant", s)
	}
}

func TestResolve_RereadsSnapshotAfterFiveMinutes(t *testing.T) {
	rdb, db := redistest.New(t), pgtest.New(t)
	d := newHarness(t, rdb, db)
	d.request()
	rdb.SAdd(t.Context(), d.keys.Set, firstTenant) // a manual change without a new version
	if d.request().Has(firstTenant) {
		t.Fatal("the set was read again with the same version")
	}
	d.time = d.time.Add(snapshotTTL)
	if !d.request().Has(firstTenant) {
		t.Error("the set was not read again after five minutes")
	}
}
