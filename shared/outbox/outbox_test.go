package outbox

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"melmastoon.ghasi.io/bff-consumer/shared/event"
	"melmastoon.ghasi.io/bff-consumer/shared/id"
	"melmastoon.ghasi.io/bff-consumer/shared/testkit/pgtest"
)

var noon = time.Date(2026, 4, 23, 12, 0, 0, 0, time.UTC)

// newEvents returns n events of a new session.
func newEvents(n int) []event.Event {
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

// recordBuffered records events of a guest whose consent is known.
func (r *Recorder) recordBuffered(ctx context.Context, events ...event.Event) error {
	_, err := r.Record(ctx, true, events...)
	return err
}

// countRows returns the number of rows of the outbox.
func countRows(t *testing.T, db *pgxpool.Pool) int {
	t.Helper()
	var n int
	if err := db.QueryRow(t.Context(), "SELECT count(*) FROM bff_consumer.outbox").Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func TestOutboxAdd_RollbackWritesNothing(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	errMutation := errors.New("the mutation failed")
	err := pgx.BeginFunc(t.Context(), db, func(tx pgx.Tx) error {
		if err := Add(t.Context(), tx, newEvents(2)...); err != nil {
			return err
		}
		return errMutation
	})
	if !errors.Is(err, errMutation) {
		t.Fatal(err)
	}
	if n := countRows(t, db); n != 0 {
		t.Errorf("got %d rows, want none", n)
	}
}

func TestOutboxAdd_CommitWritesWholeMessage(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	e := newEvents(1)[0]
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
		t.Errorf("row (-want +got):\n%s", diff)
	}
}

func TestOutboxAdd_IsIdempotent(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	events := newEvents(3)
	for range 2 {
		err := pgx.BeginFunc(t.Context(), db, func(tx pgx.Tx) error { return Add(t.Context(), tx, events...) })
		if err != nil {
			t.Fatal(err)
		}
	}
	if n := countRows(t, db); n != 3 {
		t.Errorf("got %d rows, want 3", n)
	}
}

func TestOutboxQueue_EventsCommitOrFailWithTheirBatch(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	for _, c := range []struct {
		name, after string
		want        int
	}{
		{"a later statement fails", "SELECT 1 / 0", 0},
		{"all statements succeed", "SELECT 1", 3},
	} {
		var b pgx.Batch
		if err := Queue(&b, newEvents(3)...); err != nil {
			t.Fatal(err)
		}
		b.Queue(c.after)
		if err := db.SendBatch(t.Context(), &b).Close(); (err == nil) != (c.want > 0) {
			t.Errorf("%s: got the error %v", c.name, err)
		}
		if n := countRows(t, db); n != c.want {
			t.Errorf("%s: got %d rows, want %d", c.name, n, c.want)
		}
	}
}

func TestOutboxQueue_WithoutEventsQueuesNothing(t *testing.T) {
	t.Parallel()
	var b pgx.Batch
	if err := Queue(&b); err != nil || b.Len() != 0 {
		t.Errorf("got %d statements, %v, want none", b.Len(), err)
	}
}

func TestOutboxAdd_WithoutEventsRunsNoStatement(t *testing.T) {
	t.Parallel()
	if err := Add(t.Context(), nil); err != nil {
		t.Error(err)
	}
}

func TestOutboxAdd_InvalidEventFailsTransaction(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	bad := newEvents(1)[0]
	bad.ID = "evt_lower"
	err := pgx.BeginFunc(t.Context(), db, func(tx pgx.Tx) error { return Add(t.Context(), tx, bad) })
	if !isRejected(err) {
		t.Errorf("got %v, want a constraint violation", err)
	}
	bad.Payload = unencodable{}
	if err := Add(t.Context(), nil, bad); err == nil {
		t.Error("payload without a JSON form: got no error")
	}
}

// unencodable is a payload that cannot be encoded.
type unencodable struct{ Chan chan int }

func (unencodable) Subject() string { return "melmastoon.bff.consumer.locale.changed.v1" }

func TestOutboxAdd_UsesOneRoundTrip(t *testing.T) {
	t.Parallel()
	db, trips := pgtest.NewCounting(t)
	tx, err := db.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(t.Context())
	// the first round includes the first use of the statement on the connection
	for _, n := range []int{1, 50} {
		trips.TakeCount()
		if err := Add(t.Context(), tx, newEvents(n)...); err != nil {
			t.Fatal(err)
		}
		if got := trips.TakeCount(); got != 1 {
			t.Errorf("%d events: got %d round trips, want 1", n, got)
		}
	}
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	trips.TakeCount()
	if err := newRecorder(db, nil, keys, 0).recordBuffered(t.Context(), newEvents(50)...); err != nil {
		t.Fatal(err)
	}
	if got := trips.TakeCount(); got != 1 {
		t.Errorf("Record: got %d round trips, want 1", got)
	}
}

// decodeBuffered decodes a value of the buffer and its event.
func decodeBuffered(t *testing.T, text string) (Row, event.Event) {
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
