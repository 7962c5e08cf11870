package adminapi

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"melmastoon.ghasi.io/bff-consumer/shared/event"
	"melmastoon.ghasi.io/bff-consumer/shared/id"
	"melmastoon.ghasi.io/bff-consumer/shared/outbox"
	"melmastoon.ghasi.io/bff-consumer/shared/testkit/pgtest"
)

func TestOutboxStats_CountsByState(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	count := func() outboxStats {
		t.Helper()
		o, err := readOutboxStats(t.Context(), db)
		if err != nil {
			t.Fatal(err)
		}
		return o
	}
	if o := count(); o != (outboxStats{}) {
		t.Errorf("empty outbox: got %+v, want zeros", o)
	}
	session := id.New(id.Session, time.Now())
	waiting, refused, parked, sent := addOutboxEvent(t, db, session), addOutboxEvent(t, db, session), addOutboxEvent(t, db, session), addOutboxEvent(t, db, session)
	execSQL(t, db, `UPDATE bff_consumer.outbox SET created_at = now() - interval '1 minute' WHERE id = $1`, waiting)
	execSQL(t, db, `UPDATE bff_consumer.outbox SET attempts = 2 WHERE id = $1`, refused)
	execSQL(t, db, `UPDATE bff_consumer.outbox SET parked_at = now(), attempts = 20, created_at = now() - interval '1 day' WHERE id = $1`, parked)
	execSQL(t, db, `UPDATE bff_consumer.outbox SET published_at = now() WHERE id = $1`, sent)
	o := count()
	if o.Unsent != 2 || o.Refused != 1 || o.Parked != 1 || o.OldestAgeSeconds < 59 || o.OldestAgeSeconds > 600 {
		t.Errorf("got %+v, want 2 unsent, 1 refused, 1 parked, about 60 s", o)
	}
	db.Close()
	if o, err := readOutboxStats(t.Context(), db); err == nil {
		t.Errorf("closed pool: got %+v, want an error", o)
	}
}

// addOutboxEvent writes an event of a session to the outbox.
func addOutboxEvent(t *testing.T, db *pgxpool.Pool, session string) (eventID string) {
	t.Helper()
	now := time.Now()
	e := event.New(event.Meta{SessionID: session, Now: now}, event.LocaleChanged{
		GuestSessionID: session, PreviousLocale: "en", NewLocale: "fr", Trigger: "user-explicit", OccurredAt: now,
	})
	if err := pgx.BeginFunc(t.Context(), db, func(tx pgx.Tx) error { return outbox.Add(t.Context(), tx, e) }); err != nil {
		t.Fatal(err)
	}
	return e.ID
}

func execSQL(t *testing.T, db *pgxpool.Pool, sql string, args ...any) {
	t.Helper()
	if _, err := db.Exec(context.WithoutCancel(t.Context()), sql, args...); err != nil {
		t.Error(err)
	}
}
