package sweep

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// insertSeed writes n rows at a time.
func (h *harness) insertSeed(s seed, n int, at time.Time) {
	h.t.Helper()
	err := pgx.BeginFunc(context.Background(), h.db, func(tx pgx.Tx) error {
		if _, err := tx.Exec(context.Background(), "DROP FUNCTION IF EXISTS pg_temp.ulid; "+ulidSQL, pgx.QueryExecModeSimpleProtocol); err != nil {
			return err
		}
		// The time, then 16 characters: random ones would now and then be equal.
		ulid := "((SELECT pg_temp.ulid($2::timestamptz)) || lpad(n::text, 8, '0') || translate(upper(substr(md5(random()::text), 1, 8)), 'ILOU', '0000'))"
		_, err := tx.Exec(context.Background(), strings.ReplaceAll(s.sql, "{id}", ulid), n, at)
		return err
	})
	if err != nil {
		h.t.Fatalf("%s: %v", s.rule, err)
	}
}

func TestSweepTables_RemoveOnlyExpiredRows(t *testing.T) {
	h := newHarness(t)
	now := time.Now()
	if len(seeds) != len(retentions) {
		t.Fatalf("%d rules, %d are tried", len(retentions), len(seeds))
	}
	for _, s := range seeds {
		r := s.retention()
		const over, young = 2*batchSize + 7, 13 // several steps
		h.insertSeed(s, over, r.seedTime(now, true))
		h.insertSeed(s, young, r.seedTime(now, false))
		h.mustRemove(s.rule, `{"dryRun":true}`, over)
		if n := h.count(r.table); n != over+young {
			t.Errorf("%s: a dry run left %d", s.rule, n)
		}
		h.mustRemove(s.rule, ``, over)
		h.mustRemove(s.rule, `{}`, 0)
		if n := h.count(r.table); n != young {
			t.Errorf("%s: %d are left, want %d", s.rule, n, young)
		}
	}
}

func TestSweepTables_KeepUnfinishedRows(t *testing.T) {
	h := newHarness(t)
	old := time.Now().Add(-400 * day)
	for _, s := range seeds {
		h.insertSeed(s, 5, old)
	}
	h.exec("UPDATE bff_consumer.outbox SET published_at = NULL")                       // never published, parked or not
	h.exec("UPDATE bff_consumer.wishlist_anonymous SET removed_at = NULL")             // still on the list
	h.exec("UPDATE bff_consumer.idempotency_keys SET expires_at = now() + '1 minute'") // not expired
	for rule, table := range map[string]string{"SweepOutbox": "outbox", "SweepWishlist": "wishlist_anonymous", "SweepIdempotency": "idempotency_keys"} {
		h.mustRemove(rule, `{}`, 0)
		if n := h.count(table); n != 5 {
			t.Errorf("%s: %d are left", rule, n)
		}
	}
	h.exec("UPDATE bff_consumer.outbox SET published_at = now()") // at last, after a year
	h.mustRemove("SweepOutbox", `{}`, 0)
}

func TestSweepTables_ConcurrentRunsShareWork(t *testing.T) {
	h := newHarness(t)
	const over = 6*batchSize + 1
	h.insertSeed(seeds[0], over, time.Now().Add(-31*day))
	var all sync.WaitGroup
	var removed [3]int64
	for i := range removed {
		all.Go(func() {
			code, report := h.trigger("SweepOutbox", `{}`)
			if removed[i] = report.Removed; code != 200 {
				t.Errorf("%d", code)
			}
		})
	}
	all.Wait()
	if sum := removed[0] + removed[1] + removed[2]; sum != over || h.count("outbox") != 0 {
		// What one run skipped because another held it, the other removed.
		t.Errorf("%v are %d, want %d; %d are left", removed, sum, over, h.count("outbox"))
	}
}

func TestSweepTables_SkipLockedRows(t *testing.T) {
	h := newHarness(t)
	h.insertSeed(seeds[0], 3, time.Now().Add(-31*day))
	tx, err := h.db.Begin(t.Context())
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
	if code, report := h.trigger("SweepOutbox", `{}`); code != 200 || !report.More || report.Removed != batchSize {
		t.Errorf("%d %+v", code, report)
	}
	h.mustRemove("SweepOutbox", `{}`, 1)
}

func TestSweepServe_FailureIsNeverOK(t *testing.T) {
	h := newHarness(t)
	for _, s := range seeds {
		h.exec("ALTER TABLE bff_consumer." + s.retention().table + " RENAME TO gone")
		for _, orders := range []string{`{}`, `{"dryRun":true}`} {
			if code, _ := h.trigger(s.rule, orders); code != 500 {
				t.Errorf("%s without its table: %d", s.rule, code)
			}
		}
		h.exec("ALTER TABLE bff_consumer.gone RENAME TO " + s.retention().table)
	}
	t.Setenv("DATABASE_URL", "postgres://127.0.0.1:1/none")
	h.openAll()
	for _, s := range seeds {
		if code, _ := h.trigger(s.rule, `{}`); code != 503 {
			t.Errorf("%s without Postgres: %d", s.rule, code)
		}
	}
}

func TestSweepServe_RejectsInvalidOptions(t *testing.T) {
	h := newHarness(t)
	h.insertSeed(seeds[0], 3, time.Now().Add(-31*day))
	for _, orders := range []string{`[]`, `{"dryrun":true}`, `{"dryRun":"yes"}`, `{"dryRun":true`, `true`, `null`, ` null`, `{"dryRun":null}`} {
		if code, _ := h.trigger("SweepOutbox", orders); code != 400 {
			t.Errorf("%s: %d", orders, code)
		}
	}
	for _, body := range []string{``, `{}`, `{"message":null}`, `{"message":{"data":"%","messageId":"1"}}`} {
		if code, _ := h.post("SweepOutbox", body); code != 400 {
			t.Errorf("%s: %d", body, code)
		}
	}
	if h.count("outbox") != 3 {
		t.Error("removed without an order")
	}
}

func TestSweepOpen_RejectsRunBeyondAckDeadline(t *testing.T) {
	newHarness(t)
	for _, run := range []string{"0s", "-1s", "10m", "soon"} {
		t.Setenv("SWEEP_RUN", run)
		if err := openFunction(t, "SweepOutbox"); err == nil {
			t.Errorf("%s is accepted", run)
		}
	}
}
