package outbox

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"melmastoon.ghasi.io/bff-consumer/shared/event"
	"melmastoon.ghasi.io/bff-consumer/shared/testkit/pgtest"
)

// insertSessionRows inserts n rows of a session. With inBackoff the first row was refused and is
// due in ten minutes.
func insertSessionRows(t *testing.T, db *pgxpool.Pool, prefix, session string, n int, inBackoff bool) {
	t.Helper()
	_, err := db.Exec(t.Context(), `
		INSERT INTO bff_consumer.outbox (id, topic, payload, headers, retention_class, attempts, due_at)
		SELECT 'evt_' || $1 || lpad(i::text, 24, '0'), 't', '{}', jsonb_build_object('orderingKey', $2::text), 'audit',
		       CASE WHEN i = 1 AND $4 THEN 1 ELSE 0 END, CASE WHEN i = 1 AND $4 THEN now() + interval '10 minutes' END
		FROM generate_series(1, $3::int) AS i`, prefix, session, n, inBackoff)
	if err != nil {
		t.Fatal(err)
	}
}

// explainBuffers returns the number of pages read by a statement, and whether it scans the table
// instead of the index.
func explainBuffers(t *testing.T, db *pgxpool.Pool, sql string, args ...any) (pages int, scan bool) {
	t.Helper()
	var text string
	if err := db.QueryRow(t.Context(), "EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) "+sql, args...).Scan(&text); err != nil {
		t.Fatal(err)
	}
	var plans []struct {
		Plan struct {
			Hit  int `json:"Shared Hit Blocks"`
			Read int `json:"Shared Read Blocks"`
		}
	}
	if err := json.Unmarshal([]byte(text), &plans); err != nil {
		t.Fatal(err)
	}
	return plans[0].Plan.Hit + plans[0].Plan.Read, !strings.Contains(text, "ix_outbox_lane")
}

// Rows behind a refused row, and rows of other sessions, do not make a poll slower.
func TestOutboxDueShards_CostIsIndependentOfBacklog(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	now := time.Now()
	insertSessionRows(t, db, "01", "gms_1A", 50, true)
	insertSessionRows(t, db, "02", "gms_2A", 50, false)
	insertSessionRows(t, db, "03", "gms_0A", 10_000, true)
	insertSessionRows(t, db, "04", "gms_3A", 10_000, false)
	insertSessionRows(t, db, "05", "gms_3B", 10_000, false)
	for i, session := range strings.Fields("gms_4C gms_5D gms_6E gms_7F gms_8G") {
		insertSessionRows(t, db, "1"+string(rune('0'+i)), session, 100, false)
	}
	if _, err := db.Exec(t.Context(), "ANALYZE bff_consumer.outbox"); err != nil {
		t.Fatal(err)
	}
	// An index probe for each of seven shards, two sessions in backoff and sixteen rows, in a table
	// of thousands of pages.
	if pages, scan := explainBuffers(t, db, selectDueShards, now); pages > 200 || scan {
		t.Errorf("poll: got %d pages, table scan %t, want few pages without a scan", pages, scan)
	}
	if pages, scan := explainBuffers(t, db, selectPending, now, "A", "", 16, lockNamespace); pages > 200 || scan {
		t.Errorf("batch: got %d pages, table scan %t, want at most 200 without a scan", pages, scan)
	}
}

func TestOutboxHasPending_IgnoresPublishedAndParkedRows(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	expectPending := func(want bool, when string) {
		t.Helper()
		if got, err := HasPending(t.Context(), db); err != nil || got != want {
			t.Errorf("%s: got %t, %v, want %t", when, got, err, want)
		}
	}
	expectPending(false, "an empty table")
	insertSessionRows(t, db, "01", "gms_1A", 20_000, true)
	expectPending(true, "rows in backoff")
	for _, sql := range []string{
		`ANALYZE bff_consumer.outbox`, // the statistics say that all rows are pending
		`UPDATE bff_consumer.outbox SET published_at = now() WHERE right(id, 1) < '5'`,
		`UPDATE bff_consumer.outbox SET parked_at = now() WHERE published_at IS NULL`,
	} {
		if _, err := db.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	expectPending(false, "published and parked rows")
	if _, scan := explainBuffers(t, db, selectAnyPending); scan {
		t.Error("got a scan of the table, want the index")
	}
}

// When a topic is missing, every session with an event of the topic is in backoff.
func TestOutboxDueShards_CostIsBoundedWithManySessionsInBackoff(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	now := time.Now()
	_, err := db.Exec(t.Context(), `
		INSERT INTO bff_consumer.outbox (id, topic, payload, headers, retention_class, attempts, due_at)
		SELECT 'evt_' || lpad(i::text, 26, '0'), 't', '{}', jsonb_build_object('orderingKey', 'gms_' || i || 'A'), 'audit', 1, now() + interval '10 minutes'
		FROM generate_series(1, 20000) AS i`)
	if err != nil {
		t.Fatal(err)
	}
	insertSessionRows(t, db, "7A", "gms_zA", 1, false)
	insertSessionRows(t, db, "7B", "gms_zB", 1, false)
	insertSessionRows(t, db, "7C", "gms_zC", 1, true)
	if _, err := db.Exec(t.Context(), "ANALYZE bff_consumer.outbox"); err != nil {
		t.Fatal(err)
	}
	if due, err := DueShards(t.Context(), db, now); err != nil || !slices.Equal(due, []string{"A", "B"}) {
		t.Errorf("due shards: got %q, %v, want A and B", due, err)
	}
	if pages, scan := explainBuffers(t, db, selectDueShards, now); pages > 10*maxSkippedSessions || scan {
		t.Errorf("poll: got %d pages, table scan %t, want few pages without a scan", pages, scan)
	}
	b, err := ClaimBatch(t.Context(), db, "A", "", 16, now, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Release(t.Context())
	if len(b.Rows) != 1 || b.Rows[0].Session != "gms_zA" {
		t.Errorf("got the rows %+v, want the row behind the sessions in backoff", b.Rows)
	}
}

func TestOutboxClaimBatch_LocksShardAndSeesPreviousMarks(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	now := time.Now()
	mine := newEvents(3)
	if err := insert(t.Context(), db, mustEncode(t, mine)); err != nil {
		t.Fatal(err)
	}
	shard := mine[0].SessionID[29:]
	if due, err := DueShards(t.Context(), db, now); err != nil || !slices.Equal(due, []string{shard}) {
		t.Fatalf("due shards: got %q, %v, want %s", due, err, shard)
	}
	claim := func() *Batch {
		t.Helper()
		b, err := ClaimBatch(t.Context(), db, shard, "", 2, now, time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	first := claim()
	if first == nil || len(first.Rows) != 2 || first.Rows[0].ID != mine[0].ID || first.Next != mine[0].SessionID {
		t.Fatalf("first claim: got %+v, want the first 2 rows", first)
	}
	if second := claim(); second != nil {
		t.Fatalf("second claim: got %+v, want none", second)
	}
	_, err := first.Mark(t.Context(), Marks{
		Published: []string{mine[0].ID}, Rejected: []Rejection{{ID: mine[1].ID, Reason: "because", Due: now.Add(time.Minute)}},
	}, now)
	if err != nil {
		t.Fatal(err)
	}
	if blocked := claim(); len(blocked.Rows) != 0 {
		t.Errorf("behind a refused row: got %+v, want no rows", blocked.Rows)
	} else {
		blocked.Release(t.Context())
		blocked.Release(t.Context()) // the second call does nothing
	}
	if due, err := DueShards(t.Context(), db, now); err != nil || len(due) != 0 {
		t.Errorf("due shards: got %q, %v, want none", due, err)
	}
	now = now.Add(time.Minute)
	again := claim()
	if len(again.Rows) != 2 || again.Rows[0].ID != mine[1].ID || again.Rows[0].Attempts != 1 {
		t.Errorf("after the backoff: got %+v, want the last 2 rows", again.Rows)
	}
	again.Release(t.Context())
	if in := db.Stat().AcquiredConns(); in != 0 {
		t.Errorf("got %d connections in use, want none", in)
	}
}

// A relay on a lost machine leaves a silent connection.
func TestOutboxClaimBatch_ExpiresWhenOwnerIsIdle(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	mine := newEvents(1)
	if err := insert(t.Context(), db, mustEncode(t, mine)); err != nil {
		t.Fatal(err)
	}
	shard := mine[0].SessionID[29:]
	abandoned, err := ClaimBatch(t.Context(), db, shard, "", 2, time.Now(), time.Millisecond)
	if err != nil || abandoned == nil {
		t.Fatalf("got %v, %v, want a batch", abandoned, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	for {
		b, err := ClaimBatch(ctx, db, shard, "", 2, time.Now(), time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		if b != nil {
			b.Release(ctx)
			break
		}
	}
	if _, err := abandoned.Mark(t.Context(), Marks{Published: []string{mine[0].ID}}, time.Now()); err == nil {
		t.Error("mark of the expired batch: got no error")
	}
}

func mustEncode(t *testing.T, events []event.Event) []Row {
	t.Helper()
	rows, err := encodeAll(events)
	if err != nil {
		t.Fatal(err)
	}
	return rows
}
