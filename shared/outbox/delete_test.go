package outbox

import (
	"context"
	"slices"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"melmastoon.ghasi.io/bff-consumer/shared/event"
	"melmastoon.ghasi.io/bff-consumer/shared/testkit/pgtest"
	"melmastoon.ghasi.io/bff-consumer/shared/testkit/redistest"
)

// setConsent records the decision of a guest.
func setConsent(t *testing.T, db *pgxpool.Pool, session string, telemetry, cleared bool) {
	t.Helper()
	_, err := db.Exec(t.Context(), `
		INSERT INTO bff_consumer.session_choice (guest_session_id, telemetry, marketing, decided_at, cleared_at)
		VALUES ($1, $2, false, now(), CASE WHEN $3 THEN now() END)`, session, telemetry, cleared)
	if err != nil {
		t.Fatal(err)
	}
}

func TestOutboxInsert_SkipsOptedOutAndClearedSessions(t *testing.T) {
	db := pgtest.New(t)
	refused, cleared, agreed, undecided := newEvents(1)[0], newEvents(1)[0], newEvents(1)[0], newEvents(1)[0]
	setConsent(t, db, refused.SessionID, false, false)
	setConsent(t, db, cleared.SessionID, true, true)
	setConsent(t, db, agreed.SessionID, true, false)
	withoutSession := event.New(event.Meta{Now: noon}, newEvents(1)[0].Payload)
	all := []event.Event{refused, cleared, agreed, undecided, withoutSession}
	for name, write := range map[string]func(...event.Event) error{
		"in a transaction": func(events ...event.Event) error {
			return pgx.BeginFunc(t.Context(), db, func(tx pgx.Tx) error { return Add(t.Context(), tx, events...) })
		},
		"in a batch": func(events ...event.Event) error {
			var batch pgx.Batch
			if err := Queue(&batch, events...); err != nil {
				return err
			}
			return db.SendBatch(t.Context(), &batch).Close()
		},
		"alone": func(events ...event.Event) error {
			return NewRecorder(db, redistest.New(t), keys).recordBuffered(t.Context(), events...)
		},
	} {
		if _, err := db.Exec(t.Context(), "DELETE FROM bff_consumer.outbox"); err != nil {
			t.Fatal(err)
		}
		// a single event has another statement
		for _, events := range [][]event.Event{all, {refused}, {cleared}, {agreed}} {
			if err := write(events...); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		rows, _ := db.Query(t.Context(), "SELECT id::text FROM bff_consumer.outbox ORDER BY id")
		got, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			t.Fatal(err)
		}
		if want := slices.Sorted(slices.Values(eventIDs([]event.Event{agreed, undecided, withoutSession}))); !slices.Equal(got, want) {
			t.Errorf("%s: ids (-want +got):\n%s", name, cmp.Diff(want, got))
		}
	}
}

func TestOutboxDeleteUnsent_DeletesUnlockedRowsOfOneSession(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	mine, others := newEvents(4), newEvents(2)
	err := pgx.BeginFunc(t.Context(), db, func(tx pgx.Tx) error { return Add(t.Context(), tx, slices.Concat(mine, others)...) })
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.Exec(t.Context(), "UPDATE bff_consumer.outbox SET published_at = now() WHERE id = $1", mine[0].ID); err != nil {
		t.Fatal(err)
	}
	relay, err := db.Begin(t.Context()) // locks the second row, as a relay that marks it
	if err != nil {
		t.Fatal(err)
	}
	defer relay.Rollback(context.Background())
	if _, err := relay.Exec(t.Context(), "SELECT FROM bff_consumer.outbox WHERE id = $1 FOR UPDATE", mine[1].ID); err != nil {
		t.Fatal(err)
	}
	var batch pgx.Batch
	var unsent []jsontext.Value
	ReadUnsent(&batch, mine[0].SessionID, &unsent)
	DeleteUnsent(&batch, mine[0].SessionID)
	if err := db.SendBatch(t.Context(), &batch).Close(); err != nil {
		t.Fatal(err)
	}
	if len(unsent) != 3 {
		t.Errorf("got %d unsent messages, want 3", len(unsent))
	}
	rows, _ := db.Query(t.Context(), "SELECT id::text FROM bff_consumer.outbox ORDER BY id")
	got, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	if want := slices.Sorted(slices.Values(append(eventIDs(others), mine[0].ID, mine[1].ID))); !slices.Equal(got, want) {
		t.Errorf("rows left (-want +got):\n%s", cmp.Diff(want, got))
	}
}

func TestOutboxDeleteBuffered_FindsAndDeletesOneSession(t *testing.T) {
	rdb := redistest.New(t)
	r := NewRecorder(pgtest.New(t), rdb, keys)
	mine := newEvents(3)
	addBuffered := func(events ...event.Event) {
		rows, err := encodeAll(events)
		if err != nil {
			t.Fatal(err)
		}
		for chunk := range slices.Chunk(rows, 50) { // so few that a busy machine meets the time limit
			if err := r.buffer(t.Context(), chunk); err != nil {
				t.Fatal(err)
			}
		}
	}
	addBuffered(mine[0])
	for range 3 { // enough for several calls of the script
		addBuffered(newEvents(bufferChunk - 300)...)
	}
	addBuffered(mine[1:]...)
	found, err := r.ReadBuffered(t.Context(), mine[0].SessionID)
	if err != nil || len(found) != 3 {
		t.Fatalf("got %d messages, %v, want 3", len(found), err)
	}
	var first event.Event
	if err := first.UnmarshalJSON(found[0]); err != nil || first.ID != mine[0].ID {
		t.Errorf("oldest message: got %s, %v, want %s", first.ID, err, mine[0].ID)
	}
	if err := r.DeleteBuffered(t.Context(), mine[0].SessionID); err != nil {
		t.Fatal(err)
	}
	left := bufferedIDs(t, rdb)
	if len(left) != 3*(bufferChunk-300) {
		t.Errorf("got %d buffered rows left, want %d", len(left), 3*(bufferChunk-300))
	}
	for _, e := range mine {
		if slices.Contains(left, e.ID) {
			t.Errorf("event %s is still buffered", e.ID)
		}
	}
	rdb.ScriptFlush(t.Context())
	if found, err = r.ReadBuffered(t.Context(), mine[0].SessionID); err != nil || len(found) != 0 {
		t.Errorf("after the deletion: got %d messages, %v, want none", len(found), err)
	}
}
