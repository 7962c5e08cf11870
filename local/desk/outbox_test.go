package desk

import (
	"testing"
	"time"

	"melmastoon.ghasi.io/bff-consumer/shared/id"
	"melmastoon.ghasi.io/bff-consumer/shared/testkit/pgtest"
)

func TestOutboxStats_CountsByState(t *testing.T) {
	db := pgtest.New(t)
	d, _ := startTestService(t, db)
	count := func() OutboxStats {
		t.Helper()
		o, err := d.OutboxStats(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return o
	}
	if o := count(); o != (OutboxStats{}) {
		t.Errorf("an empty one: %+v", o)
	}
	session := id.New(id.Session, time.Now())
	waiting, refused, parked, sent := addOutboxEvent(t, db, session), addOutboxEvent(t, db, session), addOutboxEvent(t, db, session), addOutboxEvent(t, db, session)
	execSQL(t, db, `UPDATE bff_consumer.outbox SET created_at = now() - interval '1 minute' WHERE id = $1`, waiting)
	execSQL(t, db, `UPDATE bff_consumer.outbox SET attempts = 2 WHERE id = $1`, refused)
	execSQL(t, db, `UPDATE bff_consumer.outbox SET parked_at = now(), attempts = 20, created_at = now() - interval '1 day' WHERE id = $1`, parked)
	execSQL(t, db, `UPDATE bff_consumer.outbox SET published_at = now() WHERE id = $1`, sent)
	o := count()
	if o.Unsent != 2 || o.Refused != 1 || o.Parked != 1 || o.OldestAgeSeconds < 59 || o.OldestAgeSeconds > 600 {
		t.Errorf("%+v", o)
	}
	db.Close()
	if o, err := d.OutboxStats(t.Context()); err == nil {
		t.Errorf("without the database: %+v", o)
	}
}
