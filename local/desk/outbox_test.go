package desk

import (
	"testing"
	"time"

	"melmastoon.ghasi.io/bff-consumer/shared/id"
	"melmastoon.ghasi.io/bff-consumer/shared/pgtest"
)

func TestTheOutboxIsCountedByWhatHoldsItsRowsBack(t *testing.T) {
	db := pgtest.New(t)
	d, _ := bench(t, db)
	count := func() Outbox {
		t.Helper()
		o, err := d.Outbox(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return o
	}
	if o := count(); o != (Outbox{}) {
		t.Errorf("an empty one: %+v", o)
	}
	session := id.New(id.Session, time.Now())
	waiting, refused, parked, sent := add(t, db, session), add(t, db, session), add(t, db, session), add(t, db, session)
	exec(t, db, `UPDATE bff_consumer.outbox SET created_at = now() - interval '1 minute' WHERE id = $1`, waiting)
	exec(t, db, `UPDATE bff_consumer.outbox SET attempts = 2 WHERE id = $1`, refused)
	exec(t, db, `UPDATE bff_consumer.outbox SET parked_at = now(), attempts = 20, created_at = now() - interval '1 day' WHERE id = $1`, parked)
	exec(t, db, `UPDATE bff_consumer.outbox SET published_at = now() WHERE id = $1`, sent)
	o := count()
	if o.Unsent != 2 || o.Refused != 1 || o.Parked != 1 || o.Oldest < 59 || o.Oldest > 600 {
		t.Errorf("%+v", o)
	}
	db.Close()
	if o, err := d.Outbox(t.Context()); err == nil {
		t.Errorf("without the database: %+v", o)
	}
}
