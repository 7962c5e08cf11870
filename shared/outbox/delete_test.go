package outbox

import (
	"context"
	"slices"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"melmastoon.ghasi.io/bff-consumer/shared/event"
	"melmastoon.ghasi.io/bff-consumer/shared/testkit/pgtest"
	"melmastoon.ghasi.io/bff-consumer/shared/testkit/redistest"
)

// setConsent records what the guest of an event decided.
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
	refused, cleared, agreed, silent := newEvents(1)[0], newEvents(1)[0], newEvents(1)[0], newEvents(1)[0]
	setConsent(t, db, refused.SessionID, false, false)
	setConsent(t, db, cleared.SessionID, true, true)
	setConsent(t, db, agreed.SessionID, true, false)
	nobody := event.New(event.Meta{Now: noon}, newEvents(1)[0].Payload)
	all := []event.Event{refused, cleared, agreed, silent, nobody}
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
		for _, events := range [][]event.Event{all, {refused}, {cleared}, {agreed}} { // one alone is another statement
			if err := write(events...); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		rows, _ := db.Query(t.Context(), "SELECT id::text FROM bff_consumer.outbox ORDER BY id")
		got, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			t.Fatal(err)
		}
		if want := slices.Sorted(slices.Values(eventIDs([]event.Event{agreed, silent, nobody}))); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
}

func TestOutboxDeleteUnsent_DeletesUnlockedRowsOfOneSession(t *testing.T) {
	db := pgtest.New(t)
	mine, others := newEvents(4), newEvents(2)
	err := pgx.BeginFunc(t.Context(), db, func(tx pgx.Tx) error { return Add(t.Context(), tx, slices.Concat(mine, others)...) })
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.Exec(t.Context(), "UPDATE bff_consumer.outbox SET published_at = now() WHERE id = $1", mine[0].ID); err != nil {
		t.Fatal(err)
	}
	relay, err := db.Begin(t.Context()) // holds the second row, as a relay does that is sending it
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
		t.Errorf("%d messages unsent, want 3", len(unsent))
	}
	rows, _ := db.Query(t.Context(), "SELECT id::text FROM bff_consumer.outbox ORDER BY id")
	got, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	if want := slices.Sorted(slices.Values(append(eventIDs(others), mine[0].ID, mine[1].ID))); !slices.Equal(got, want) {
		t.Errorf("left %v, want %v", got, want)
	}
}

func TestOutboxDeleteBuffered_FindsAndDeletesOneSession(t *testing.T) {
	rdb := redistest.New(t)
	r := NewRecorder(pgtest.New(t), rdb, keys)
	mine := newEvents(3)
	spill := func(events ...event.Event) {
		rows, err := encodeAll(events)
		if err != nil {
			t.Fatal(err)
		}
		for some := range slices.Chunk(rows, 50) { // few enough for the patience of a push, on a busy machine too
			if err := r.buffer(t.Context(), some); err != nil {
				t.Fatal(err)
			}
		}
	}
	spill(mine[0])
	for range 3 { // so many that it takes several looks
		spill(newEvents(bufferChunk - 300)...)
	}
	spill(mine[1:]...)
	found, err := r.ReadBuffered(t.Context(), mine[0].SessionID)
	if err != nil || len(found) != 3 {
		t.Fatalf("found %d, %v", len(found), err)
	}
	var first event.Event
	if err := first.UnmarshalJSON(found[0]); err != nil || first.ID != mine[0].ID {
		t.Errorf("the oldest is %s, %v", first.ID, err)
	}
	if err := r.DeleteBuffered(t.Context(), mine[0].SessionID); err != nil {
		t.Fatal(err)
	}
	left := bufferedIDs(t, rdb)
	if len(left) != 3*(bufferChunk-300) {
		t.Errorf("%d rows left", len(left))
	}
	for _, e := range mine {
		if slices.Contains(left, e.ID) {
			t.Errorf("%s is left", e.ID)
		}
	}
	rdb.ScriptFlush(t.Context())
	if found, err = r.ReadBuffered(t.Context(), mine[0].SessionID); err != nil || len(found) != 0 {
		t.Errorf("then found %d, %v", len(found), err)
	}
}
