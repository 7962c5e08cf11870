package outbox

import (
	"context"
	"net/url"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"melmastoon.ghasi.io/bff-consumer/shared/event"
	"melmastoon.ghasi.io/bff-consumer/shared/testkit/pgtest"
	"melmastoon.ghasi.io/bff-consumer/shared/testkit/redistest"
)

// insertUncommitted writes e in a transaction that ends with the test, or when the returned function is called.
func insertUncommitted(t *testing.T, db *pgxpool.Pool, e event.Event) (release func()) {
	t.Helper()
	tx, err := db.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	release = func() { tx.Rollback(context.Background()) }
	t.Cleanup(release)
	if err := Add(t.Context(), tx, e); err != nil {
		t.Fatal(err)
	}
	return release
}

// Who waits for the first of the events must not have written a later one: the holder of the first may be about to.
func TestOutboxInsert_SameEventsInAnyOrderCannotDeadlock(t *testing.T) {
	for name, write := range map[string]func(*testing.T, *pgxpool.Pool, []event.Event) error{
		"in a transaction": func(t *testing.T, db *pgxpool.Pool, events []event.Event) error {
			return pgx.BeginFunc(t.Context(), db, func(tx pgx.Tx) error { return Add(t.Context(), tx, events...) })
		},
		"on a batch": func(t *testing.T, db *pgxpool.Pool, events []event.Event) error {
			var b pgx.Batch
			if err := Queue(&b, events...); err != nil {
				return err
			}
			return db.SendBatch(t.Context(), &b).Close()
		},
		"by themselves, and from the spill": func(t *testing.T, db *pgxpool.Pool, events []event.Event) error {
			rows, err := encodeAll(events)
			if err != nil {
				return err
			}
			return insert(t.Context(), db, rows)
		},
	} {
		t.Run(name, func(t *testing.T) {
			db := pgtest.New(t)
			events := newEvents(50)
			release := insertUncommitted(t, db, events[0])
			backwards := slices.Clone(events)
			slices.Reverse(backwards)
			written := make(chan error, 1)
			go func() { written <- write(t, db, backwards) }()
			pgtest.AwaitLockWait(t, db)

			tx, err := db.Begin(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer tx.Rollback(t.Context())
			if _, err := tx.Exec(t.Context(), "SET LOCAL lock_timeout = '1ms'"); err != nil {
				t.Fatal(err)
			}
			if err := Add(t.Context(), tx, events[49]); err != nil {
				t.Errorf("the last event is taken before the first: %v", err)
			}
			tx.Rollback(t.Context())
			release()
			if err := <-written; err != nil {
				t.Fatal(err)
			}
			if n := countRows(t, db); n != 50 {
				t.Errorf("%d rows, want 50", n)
			}
		})
	}
}

func TestOutboxRecord_ContentionDoesNotOpenBreaker(t *testing.T) {
	impatient, err := url.Parse(pgtest.URL(t))
	if err != nil {
		t.Fatal(err)
	}
	query := impatient.Query()
	query.Set("lock_timeout", "1ms")
	impatient.RawQuery = query.Encode()
	db, err := pgxpool.New(t.Context(), impatient.String())
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	rdb := redistest.New(t)
	r := NewRecorder(db, rdb, keys)
	events := newEvents(2)
	release := insertUncommitted(t, db, events[0])
	defer release()
	for range breakerThreshold + 1 {
		if err := r.recordBuffered(t.Context(), events[0]); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(bufferedIDs(t, rdb)); n != breakerThreshold+1 {
		t.Errorf("%d rows wait in Redis, want %d", n, breakerThreshold+1)
	}
	if err := r.recordBuffered(t.Context(), events[1]); err != nil {
		t.Fatal(err)
	}
	if n := countRows(t, db); n != 1 {
		t.Errorf("another guest's event did not go to Postgres: %d rows", n)
	}
}
