package sweep

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// insertSeed inserts n rows of a rule's table with the time at.
func (h *harness) insertSeed(s seed, n int, at time.Time) {
	h.T.Helper()
	err := pgx.BeginFunc(context.Background(), h.DB, func(tx pgx.Tx) error {
		if _, err := tx.Exec(context.Background(), "DROP FUNCTION IF EXISTS pg_temp.ulid; "+ulidSQL, pgx.QueryExecModeSimpleProtocol); err != nil {
			return err
		}
		// The number n makes the ids unique; 8 random characters alone would collide now and then.
		ulid := "((SELECT pg_temp.ulid($2::timestamptz)) || lpad(n::text, 8, '0') || translate(upper(substr(md5(random()::text), 1, 8)), 'ILOU', '0000'))"
		_, err := tx.Exec(context.Background(), strings.ReplaceAll(s.sql, "{id}", ulid), n, at)
		return err
	})
	if err != nil {
		h.T.Fatalf("%s: %v", s.rule, err)
	}
}

func TestSweepTables_RemoveOnlyExpiredRows(t *testing.T) {
	h := newHarness(t)
	now := time.Now()
	if len(seeds) != len(retentions) {
		t.Fatalf("got %d seeds, want one for each of %d rules", len(seeds), len(retentions))
	}
	for _, s := range seeds {
		r := s.retention()
		const expired, kept = 2*batchSize + 7, 13 // several batches
		h.insertSeed(s, expired, r.seedTime(now, true))
		h.insertSeed(s, kept, r.seedTime(now, false))
		h.mustRemove(s.rule, `{"dryRun":true}`, expired)
		if n := h.Count(r.table); n != expired+kept {
			t.Errorf("%s: got %d rows after a dry run, want %d", s.rule, n, expired+kept)
		}
		h.mustRemove(s.rule, ``, expired)
		h.mustRemove(s.rule, `{}`, 0)
		if n := h.Count(r.table); n != kept {
			t.Errorf("%s: got %d rows, want %d", s.rule, n, kept)
		}
	}
}

func TestSweepTables_KeepUnfinishedRows(t *testing.T) {
	h := newHarness(t)
	old := time.Now().Add(-400 * day)
	for _, s := range seeds {
		h.insertSeed(s, 5, old)
	}
	// unpublished, parked or not
	h.Exec("UPDATE bff_consumer.outbox SET published_at = NULL")
	// not removed from the wishlist
	h.Exec("UPDATE bff_consumer.wishlist_anonymous SET removed_at = NULL")
	h.Exec("UPDATE bff_consumer.idempotency_keys SET expires_at = now() + '1 minute'") // not expired
	for rule, table := range map[string]string{"SweepOutbox": "outbox", "SweepWishlist": "wishlist_anonymous", "SweepIdempotency": "idempotency_keys"} {
		h.mustRemove(rule, `{}`, 0)
		if n := h.Count(table); n != 5 {
			t.Errorf("%s: got %d rows, want 5", rule, n)
		}
	}
	h.Exec("UPDATE bff_consumer.outbox SET published_at = now()") // a year after the creation
	h.mustRemove("SweepOutbox", `{}`, 0)
}

func TestSweepTables_ConcurrentRunsShareWork(t *testing.T) {
	h := newHarness(t)
	const expired = 6*batchSize + 1
	h.insertSeed(seeds[0], expired, time.Now().Add(-31*day))
	var all sync.WaitGroup
	var removed [3]int64
	for i := range removed {
		all.Go(func() {
			status, report := h.trigger("SweepOutbox", `{}`)
			if removed[i] = report.Removed; status != 200 {
				t.Errorf("got %d, want 200", status)
			}
		})
	}
	all.Wait()
	if sum := removed[0] + removed[1] + removed[2]; sum != expired || h.Count("outbox") != 0 {
		// A run skips rows locked by another run, which removes them.
		t.Errorf("got %v removed, %d together, and %d rows left; want %d and none", removed, sum, h.Count("outbox"), expired)
	}
}

func TestSweepTables_SkipLockedRows(t *testing.T) {
	h := newHarness(t)
	h.insertSeed(seeds[0], 3, time.Now().Add(-31*day))
	tx, err := h.DB.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), "SELECT FROM bff_consumer.outbox ORDER BY id LIMIT 1 FOR UPDATE"); err != nil {
		t.Fatal(err)
	}
	h.mustRemove("SweepOutbox", `{}`, 2)
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	h.mustRemove("SweepOutbox", `{}`, 1)
}

func TestSweepTables_RunStopsAtTimeLimitAndNextContinues(t *testing.T) {
	h := newHarness(t)
	t.Setenv("SWEEP_RUN", "1ns")
	h.openAll()
	h.insertSeed(seeds[0], batchSize+1, time.Now().Add(-31*day))
	if status, report := h.trigger("SweepOutbox", `{}`); status != 200 || !report.More || report.Removed != batchSize {
		t.Errorf("got %d %+v, want 200, %d removed rows and more", status, report, batchSize)
	}
	h.mustRemove("SweepOutbox", `{}`, 1)
}

func TestSweepServe_FailureIsNeverOK(t *testing.T) {
	h := newHarness(t)
	for _, s := range seeds {
		h.Exec("ALTER TABLE bff_consumer." + s.retention().table + " RENAME TO gone")
		for _, options := range []string{`{}`, `{"dryRun":true}`} {
			if status, _ := h.trigger(s.rule, options); status != 500 {
				t.Errorf("%s %s without its table: got %d, want 500", s.rule, options, status)
			}
		}
		h.Exec("ALTER TABLE bff_consumer.gone RENAME TO " + s.retention().table)
	}
	t.Setenv("DATABASE_URL", "postgres://127.0.0.1:1/none")
	h.openAll()
	for _, s := range seeds {
		if status, _ := h.trigger(s.rule, `{}`); status != 503 {
			t.Errorf("%s without Postgres: got %d, want 503", s.rule, status)
		}
	}
}

func TestSweepServe_RejectsInvalidOptions(t *testing.T) {
	h := newHarness(t)
	h.insertSeed(seeds[0], 3, time.Now().Add(-31*day))
	for _, options := range []string{`[]`, `{"dryrun":true}`, `{"dryRun":"yes"}`, `{"dryRun":true`, `true`, `null`, ` null`, `{"dryRun":null}`} {
		if status, _ := h.trigger("SweepOutbox", options); status != 400 {
			t.Errorf("options %s: got %d, want 400", options, status)
		}
	}
	for _, body := range []string{``, `{}`, `{"message":null}`, `{"message":{"data":"%","messageId":"1"}}`} {
		if status, _ := h.post("SweepOutbox", body); status != 400 {
			t.Errorf("body %s: got %d, want 400", body, status)
		}
	}
	if n := h.Count("outbox"); n != 3 {
		t.Errorf("got %d rows, want 3: a malformed tick was acted on", n)
	}
}

func TestSweepOpen_RejectsRunBeyondAckDeadline(t *testing.T) {
	h := newHarness(t)
	for _, run := range []string{"0s", "-1s", "10m", "soon"} {
		t.Setenv("SWEEP_RUN", run)
		if err := h.openFunction("SweepOutbox"); err == nil {
			t.Errorf("SWEEP_RUN=%s: got no error", run)
		}
	}
}
