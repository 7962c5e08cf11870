package outbox

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"melmastoon.ghasi.io/bff-consumer/shared/event"
	"melmastoon.ghasi.io/bff-consumer/shared/id"
	"melmastoon.ghasi.io/bff-consumer/shared/pgtest"
)

var noon = time.Date(2026, 4, 23, 12, 0, 0, 0, time.UTC)

// changes are n events of one session.
func changes(n int) []event.Event {
	session := id.New(id.Session, noon)
	events := make([]event.Event, n)
	for i := range events {
		events[i] = event.New(event.Meta{
			SessionID: session, RequestID: id.New(id.Request, noon), Now: noon,
			Traceparent: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
		}, event.LocaleChanged{
			GuestSessionID: session, PreviousLocale: "en", NewLocale: "ps-AF", Trigger: "user-explicit", OccurredAt: noon,
		})
	}
	return events
}

// stored is how many rows the outbox has.
func stored(t *testing.T, db *pgxpool.Pool) int {
	t.Helper()
	var n int
	if err := db.QueryRow(t.Context(), "SELECT count(*) FROM bff_consumer.outbox").Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func TestARollbackAnnouncesNothing(t *testing.T) {
	db := pgtest.New(t)
	undone := errors.New("the mutation failed")
	err := pgx.BeginFunc(t.Context(), db, func(tx pgx.Tx) error {
		if err := Add(t.Context(), tx, changes(2)...); err != nil {
			return err
		}
		return undone
	})
	if !errors.Is(err, undone) {
		t.Fatal(err)
	}
	if n := stored(t, db); n != 0 {
		t.Errorf("%d rows, want none", n)
	}
}

func TestACommitAnnouncesTheWholeMessage(t *testing.T) {
	db := pgtest.New(t)
	e := changes(1)[0]
	err := pgx.BeginFunc(t.Context(), db, func(tx pgx.Tx) error { return Add(t.Context(), tx, e) })
	if err != nil {
		t.Fatal(err)
	}
	rows, _ := db.Query(t.Context(), `
		SELECT id, topic, payload, headers, retention_class, published_at, attempts
		FROM bff_consumer.outbox`)
	type row struct {
		ID, Topic   string
		Payload     event.Event
		Headers     map[string]string
		Class       string
		PublishedAt *time.Time
		Attempts    int
	}
	got, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByPos[row])
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(row{
		ID: e.ID, Topic: "melmastoon.bff.consumer.locale.changed.v1", Payload: e, Class: "operational",
		Headers: map[string]string{
			"eventId":        e.ID,
			"subject":        "melmastoon.bff.consumer.locale.changed.v1",
			"schemaUri":      "https://schemas.melmastoon.ghasi.io/bff-consumer/locale-changed/v1.json",
			"retentionClass": "operational",
			"traceparent":    e.Traceparent,
			"orderingKey":    e.SessionID,
		},
	}, got); diff != "" {
		t.Error(diff)
	}
}

func TestATransactionMayRunTwice(t *testing.T) {
	db := pgtest.New(t)
	events := changes(3)
	for range 2 {
		err := pgx.BeginFunc(t.Context(), db, func(tx pgx.Tx) error { return Add(t.Context(), tx, events...) })
		if err != nil {
			t.Fatal(err)
		}
	}
	if n := stored(t, db); n != 3 {
		t.Errorf("%d rows, want 3", n)
	}
}

func TestQueuedEventsShareTheFateOfTheirBatch(t *testing.T) {
	db := pgtest.New(t)
	for _, c := range []struct {
		name, after string
		want        int
	}{
		{"a statement behind them fails", "SELECT 1 / 0", 0},
		{"all is well", "SELECT 1", 3},
	} {
		var b pgx.Batch
		if err := Queue(&b, changes(3)...); err != nil {
			t.Fatal(err)
		}
		b.Queue(c.after)
		if err := db.SendBatch(t.Context(), &b).Close(); (err == nil) != (c.want > 0) {
			t.Errorf("%s: %v", c.name, err)
		}
		if n := stored(t, db); n != c.want {
			t.Errorf("%s: %d rows, want %d", c.name, n, c.want)
		}
	}
}

func TestQueueingNothingAsksNobody(t *testing.T) {
	var b pgx.Batch
	if err := Queue(&b); err != nil || b.Len() != 0 {
		t.Errorf("%v, %d statements", err, b.Len())
	}
}

func TestAddingNothingAsksNobody(t *testing.T) {
	if err := Add(t.Context(), nil); err != nil {
		t.Error(err)
	}
}

func TestAnEventThatIsNoneFailsTheTransaction(t *testing.T) {
	db := pgtest.New(t)
	bad := changes(1)[0]
	bad.ID = "evt_lower"
	err := pgx.BeginFunc(t.Context(), db, func(tx pgx.Tx) error { return Add(t.Context(), tx, bad) })
	if !refused(err) {
		t.Errorf("%v, want a broken constraint", err)
	}
	bad.Payload = nowhere{}
	if err := Add(t.Context(), nil, bad); err == nil {
		t.Error("a payload without JSON was accepted")
	}
}

// nowhere is a payload that cannot be encoded.
type nowhere struct{ Chan chan int }

func (nowhere) Subject() string { return "melmastoon.bff.consumer.locale.changed.v1" }

func TestOneRoundTripForAll(t *testing.T) {
	db, trips := pgtest.Counted(t)
	tx, err := db.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(t.Context())
	for _, n := range []int{1, 50} { // the first use of the statement on this connection included
		trips.Take()
		if err := Add(t.Context(), tx, changes(n)...); err != nil {
			t.Fatal(err)
		}
		if got := trips.Take(); got != 1 {
			t.Errorf("%d events: %d round trips, want 1", n, got)
		}
	}
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	trips.Take()
	if err := newRecorder(db, nil, keys, 0).Record(t.Context(), changes(50)...); err != nil {
		t.Fatal(err)
	}
	if got := trips.Take(); got != 1 {
		t.Errorf("record: %d round trips, want 1", got)
	}
}

// decode is what the relay does with a row that waited in Redis.
func decode(t *testing.T, text string) (Row, event.Event) {
	t.Helper()
	var row Row
	if err := json.Unmarshal([]byte(text), &row); err != nil {
		t.Fatal(err)
	}
	var e event.Event
	if err := json.Unmarshal(row.Payload, &e); err != nil {
		t.Fatal(err)
	}
	return row, e
}
