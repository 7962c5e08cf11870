package tenants

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"melmastoon.ghasi.io/bff-consumer/shared/pgtest"
	"melmastoon.ghasi.io/bff-consumer/shared/redistest"
)

// deaf is a Postgres that never answers.
type deaf struct{ asked int }

func (d *deaf) Query(context.Context, string, ...any) (pgx.Rows, error) {
	d.asked++
	return nil, errors.New("no answer")
}

func TestACopyThatIsRightCostsNoRoundTripOfItsOwn(t *testing.T) {
	rdb, db := redistest.New(t), pgtest.New(t)
	d := newDesk(t, rdb, db)
	d.ask()
	trips := redistest.Count(rdb)
	for range 3 {
		d.ask()
	}
	if n := trips.Take(); n != 3 {
		t.Errorf("%d round trips for three requests", n)
	}
}

func TestWhatWasFetchedBeforeAnybodyAskedCostsTheFirstNoRoundTrip(t *testing.T) {
	rdb := redistest.New(t)
	d := newDesk(t, rdb, nil)
	if err := d.Fetch(t.Context()); err != nil || d.ask().Known() {
		t.Fatalf("of a set that was lost: %v, known: %t", err, d.ask().Known())
	}
	rdb.Set(t.Context(), d.keys.Version, "1", 0)
	rdb.SAdd(t.Context(), d.keys.Set, whole, first)
	if err := d.Fetch(t.Context()); err != nil {
		t.Fatal(err)
	}
	trips := redistest.Count(rdb)
	if s := d.ask(); !s.Has(first) {
		t.Errorf("%+v", s)
	}
	if n := trips.Take(); n != 1 {
		t.Errorf("%d round trips for the first request", n)
	}
}

func TestAChangeIsReadOnceAndNobodyIsShownTheOldSet(t *testing.T) {
	rdb, db := redistest.New(t), pgtest.New(t)
	d := newDesk(t, rdb, db)
	d.ask()
	record(t, db, first)
	if err := d.Suspend(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	peeked := rdb.Get(t.Context(), d.keys.Version)
	var all sync.WaitGroup
	for range 100 {
		all.Go(func() {
			if !d.Settle(t.Context(), peeked).Has(first) {
				t.Error("shown the old set")
			}
		})
	}
	all.Wait()
}

func TestAPostgresThatDoesNotAnswerIsAskedOnceASecond(t *testing.T) {
	db := &deaf{}
	d := newDesk(t, redistest.New(t), db)
	for range 10 {
		if d.ask().Known() {
			t.Fatal("claims to know")
		}
	}
	if db.asked != 1 {
		t.Errorf("asked %d times within a second", db.asked)
	}
	d.time = d.time.Add(pause)
	d.ask()
	if db.asked != 2 {
		t.Errorf("asked %d times in two", db.asked)
	}
}

func TestARedisThatOnlyReadsHasTheRecordReadOnceASecond(t *testing.T) {
	rdb, db := redistest.Server(t).Client(), pgtest.New(t)
	record(t, db, first)
	if err := rdb.Do(t.Context(), "replicaof", "127.0.0.1", "1").Err(); err != nil {
		t.Fatal(err)
	}
	asked := &counting{Querier: db}
	d := newDesk(t, rdb, asked)
	for range 10 {
		if !d.ask().Has(first) {
			t.Fatal("what the record says was not kept")
		}
	}
	if asked.n != 1 {
		t.Errorf("asked %d times within a second", asked.n)
	}
	d.time = d.time.Add(pause)
	record(t, db, second)
	if !d.ask().Has(second) {
		t.Error("not read again after a second")
	}
}

// counting is a Postgres that counts how often it was asked.
type counting struct {
	Querier
	n int
}

func (c *counting) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	c.n++
	return c.Querier.Query(ctx, sql, args...)
}

func TestWithoutPostgresALostSetIsNotKnown(t *testing.T) {
	rdb := redistest.New(t)
	d := newDesk(t, rdb, nil)
	if s := d.ask(); s.Known() || s.Has(first) {
		t.Errorf("%+v", s)
	}
	rdb.Set(t.Context(), d.keys.Version, "1", 0)
	rdb.SAdd(t.Context(), d.keys.Set, whole, first)
	if s := d.ask(); !s.Known() || !s.Has(first) {
		t.Errorf("%+v", s)
	}
	rdb.Del(t.Context(), d.keys.Version, d.keys.Set)
	d.time = d.time.Add(time.Hour)
	if s := d.ask(); !s.Known() || !s.Has(first) {
		t.Errorf("forgotten with Redis: %+v", s)
	}
}

func TestACallerWhoLeavesDoesNotWait(t *testing.T) {
	rdb, db := redistest.New(t), pgtest.New(t)
	late := &slowQuerier{Querier: db, read: make(chan struct{}), go_: make(chan struct{})}
	d := newDesk(t, rdb, late)
	ctx, leave := context.WithCancel(t.Context())
	settled := make(chan *Suspended)
	go func() { settled <- d.Settle(ctx, rdb.Get(t.Context(), d.keys.Version)) }()
	<-late.read
	leave()
	if (<-settled).Known() {
		t.Error("claims to know")
	}
	close(late.go_)
}
