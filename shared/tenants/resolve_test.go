package tenants

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"melmastoon.ghasi.io/bff-consumer/shared/testkit/pgtest"
	"melmastoon.ghasi.io/bff-consumer/shared/testkit/redistest"
)

// unresponsiveDB is a Postgres whose queries fail.
type unresponsiveDB struct{ queries int }

func (d *unresponsiveDB) Query(context.Context, string, ...any) (pgx.Rows, error) {
	d.queries++
	return nil, errors.New("no answer")
}

func TestResolve_CurrentSnapshotCostsNoRoundTrip(t *testing.T) {
	rdb, db := redistest.New(t), pgtest.New(t)
	d := newHarness(t, rdb, db)
	d.request()
	trips := redistest.Count(rdb)
	for range 3 {
		d.request()
	}
	if n := trips.TakeCount(); n != 3 {
		t.Errorf("%d round trips for three requests, want 3", n)
	}
}

func TestPreload_FirstRequestCostsNoRoundTrip(t *testing.T) {
	rdb := redistest.New(t)
	d := newHarness(t, rdb, nil)
	if err := d.Preload(t.Context()); err != nil || d.request().Known() {
		t.Fatalf("lost set: error %v, known %t; want nil and false", err, d.request().Known())
	}
	rdb.Set(t.Context(), d.keys.Version, "1", 0)
	rdb.SAdd(t.Context(), d.keys.Set, completeMarker, firstTenant)
	if err := d.Preload(t.Context()); err != nil {
		t.Fatal(err)
	}
	trips := redistest.Count(rdb)
	if s := d.request(); !s.Has(firstTenant) {
		t.Errorf("%+v, want the suspended tenant", s)
	}
	if n := trips.TakeCount(); n != 1 {
		t.Errorf("%d round trips for the first request, want 1", n)
	}
}

func TestResolve_ChangeIsReadOnceAndOldSetNotServed(t *testing.T) {
	rdb, db := redistest.New(t), pgtest.New(t)
	d := newHarness(t, rdb, db)
	d.request()
	insertSuspension(t, db, firstTenant)
	if err := d.Suspend(t.Context(), firstTenant); err != nil {
		t.Fatal(err)
	}
	queued := rdb.Get(t.Context(), d.keys.Version)
	var all sync.WaitGroup
	for range 100 {
		all.Go(func() {
			if !d.Resolve(t.Context(), queued).Has(firstTenant) {
				t.Error("Resolve returned the old set")
			}
		})
	}
	all.Wait()
}

func TestResolve_UnresponsivePostgresIsQueriedOncePerSecond(t *testing.T) {
	db := &unresponsiveDB{}
	d := newHarness(t, redistest.New(t), db)
	for range 10 {
		if d.request().Known() {
			t.Fatal("known without an answer of a store")
		}
	}
	if db.queries != 1 {
		t.Errorf("%d queries within a second, want 1", db.queries)
	}
	d.time = d.time.Add(retryInterval)
	d.request()
	if db.queries != 2 {
		t.Errorf("%d queries within two seconds, want 2", db.queries)
	}
}

func TestResolve_ReadOnlyRedisReadsPostgresOncePerSecond(t *testing.T) {
	t.Parallel()
	rdb, db := redistest.NewServer(t).Client(), pgtest.New(t)
	insertSuspension(t, db, firstTenant)
	if err := rdb.Do(t.Context(), "replicaof", "127.0.0.1", "1").Err(); err != nil {
		t.Fatal(err)
	}
	counting := &countingDB{Querier: db}
	d := newHarness(t, rdb, counting)
	for range 10 {
		if !d.request().Has(firstTenant) {
			t.Fatal("the set from Postgres was not kept")
		}
	}
	if counting.queries != 1 {
		t.Errorf("%d queries within a second, want 1", counting.queries)
	}
	d.time = d.time.Add(retryInterval)
	insertSuspension(t, db, secondTenant)
	if !d.request().Has(secondTenant) {
		t.Error("the set was not read again after a second")
	}
}

// countingDB counts the queries of a Postgres.
type countingDB struct {
	Querier
	queries int
}

func (c *countingDB) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	c.queries++
	return c.Querier.Query(ctx, sql, args...)
}

func TestResolve_LostSetWithoutPostgresIsUnknown(t *testing.T) {
	rdb := redistest.New(t)
	d := newHarness(t, rdb, nil)
	if s := d.request(); s.Known() || s.Has(firstTenant) {
		t.Errorf("lost set: %+v, want an unknown set", s)
	}
	rdb.Set(t.Context(), d.keys.Version, "1", 0)
	rdb.SAdd(t.Context(), d.keys.Set, completeMarker, firstTenant)
	if s := d.request(); !s.Known() || !s.Has(firstTenant) {
		t.Errorf("set in Redis: %+v, want the suspended tenant", s)
	}
	rdb.Del(t.Context(), d.keys.Version, d.keys.Set)
	d.time = d.time.Add(time.Hour)
	if s := d.request(); !s.Known() || !s.Has(firstTenant) {
		t.Errorf("set lost in Redis: %+v, want the last set", s)
	}
}

func TestResolve_CanceledCallerDoesNotWait(t *testing.T) {
	rdb, db := redistest.New(t), pgtest.New(t)
	slow := &slowDB{Querier: db, started: make(chan struct{}), release: make(chan struct{})}
	d := newHarness(t, rdb, slow)
	ctx, cancel := context.WithCancel(t.Context())
	resolved := make(chan *SuspendedSet)
	go func() { resolved <- d.Resolve(ctx, rdb.Get(t.Context(), d.keys.Version)) }()
	<-slow.started
	cancel()
	if (<-resolved).Known() {
		t.Error("known without a read")
	}
	close(slow.release)
}
