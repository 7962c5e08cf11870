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

// insertUncommitted inserts e in a transaction that is open until release is called or the test
// ends.
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

// A writer that waits for the row of the first event must not hold the row of a later event: the
// other writer may need that row next.
func TestOutboxInsert_SameEventsInAnyOrderCannotDeadlock(t *testing.T) {
	t.Parallel()
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
		"alone, and from the buffer": func(t *testing.T, db *pgxpool.Pool, events []event.Event) error {
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
				t.Errorf("insert of the last event: got %v, want no wait for a lock", err)
			}
			tx.Rollback(t.Context())
			release()
			if err := <-written; err != nil {
				t.Fatal(err)
			}
			if n := countRows(t, db); n != 50 {
				t.Errorf("got %d rows, want 50", n)
			}
		})
	}
}

func TestOutboxRecord_ContentionDoesNotOpenBreaker(t *testing.T) {
	withTimeout, err := url.Parse(pgtest.URL(t))
	if err != nil {
		t.Fatal(err)
	}
	query := withTimeout.Query()
	query.Set("lock_timeout", "1ms")
	withTimeout.RawQuery = query.Encode()
	db, err := pgxpool.New(t.Context(), withTimeout.String())
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
		t.Errorf("got %d buffered rows, want %d", n, breakerThreshold+1)
	}
	if err := r.recordBuffered(t.Context(), events[1]); err != nil {
		t.Fatal(err)
	}
	if n := countRows(t, db); n != 1 {
		t.Errorf("event of another guest: got %d rows in Postgres, want 1", n)
	}
}
