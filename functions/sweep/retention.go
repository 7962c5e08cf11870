package sweep

import (
	"context"
	"fmt"
	"strings"
	"time"

	"melmastoon.ghasi.io/bff-consumer/shared/id"
)

// retention is one rule of docs/spec/data-model.md#retention: rows of a table that are over. They are found by an index, in its order.
type retention struct {
	name, path   string
	table        string
	orderColumn  string        // the indexed column
	idPrefix     id.Prefix     // of the ids in it, which sort by time; empty: it is a time
	expiryColumn string        // of a row, what must be before $1, besides what order says; empty: nothing
	period       time.Duration // how long a row is kept after that
}

// retentions are the tables with a life span. Outbox rows that were never published stay until somebody looks.
var retentions = []retention{
	{"SweepOutbox", "sweep-outbox", "outbox", "id", id.Event, "published_at", 30 * 24 * time.Hour},
	{"SweepInbox", "sweep-inbox", "inbox", "received_at", "", "", 7 * 24 * time.Hour},
	{"SweepParked", "sweep-parked", "inbox_parked", "received_at", "", "", 30 * 24 * time.Hour},
	{"SweepHandoffs", "sweep-handoffs", "handoff_replay_log", "id", id.Handoff, "minted_at", 24 * time.Hour},
	{"SweepWishlist", "sweep-wishlist", "wishlist_anonymous", "removed_at", "", "", 30 * 24 * time.Hour},
	{"SweepBotScores", "sweep-bot-scores", "bot_score_log", "evaluated_at", "", "", 7 * 24 * time.Hour},
	{"SweepIdempotency", "sweep-idempotency", "idempotency_keys", "expires_at", "", "", 0},
	// An id is genuine for 365 days. A day more, because a clock may be behind.
	{"SweepChoices", "sweep-choices", "session_choice", "guest_session_id", id.Session, "", 366 * 24 * time.Hour},
}

// batchSize rows are removed at a time: some tens of milliseconds, so that nobody waits for their locks and little is lost
// when one fails.
const batchSize = 5_000

// countLimit is how far a dry run counts, because counting is no faster than removing.
const countLimit = 100_000

// tableSweeper removes rows of one table.
type tableSweeper struct {
	db   database
	rule retention
}

func (s tableSweeper) sweep(ctx context.Context, now time.Time, enough func() bool) (removed int64, more bool, err error) {
	remove, from := s.rule.deleteStatement(), s.rule.startCursor()
	for {
		var n int64
		// The next step looks from where this one ended: what was removed is still in the index until the next vacuum.
		err := s.db.QueryRow(ctx, remove, now.Add(-s.rule.period), s.rule.cutoff(now), from, batchSize).Scan(&n, &from)
		if err != nil {
			return removed, false, fmt.Errorf("sweep: %s: %w", s.rule.table, err)
		}
		removed += n
		if n < batchSize {
			return removed, false, nil
		}
		if enough() {
			return removed, true, nil
		}
	}
}

func (s tableSweeper) count(ctx context.Context, now time.Time) (n int64, more bool, err error) {
	sql := "SELECT count(*) FROM (SELECT FROM bff_consumer." + s.rule.table + " WHERE " + s.rule.condition() + " LIMIT $4) AS over"
	err = s.db.QueryRow(ctx, sql, now.Add(-s.rule.period), s.rule.cutoff(now), s.rule.startCursor(), countLimit).Scan(&n)
	if err != nil {
		return 0, false, fmt.Errorf("sweep: count %s: %w", s.rule.table, err)
	}
	return n, n == countLimit, nil
}

// deleteStatement removes one step. Rows that another run holds are left to it.
func (r retention) deleteStatement() string {
	return strings.NewReplacer("{table}", "bff_consumer."+r.table, "{order}", r.orderColumn, "{where}", r.condition()).Replace(`
		WITH over AS (
			SELECT ctid, {order} AS at
			FROM {table}
			WHERE {where}
			ORDER BY {order}
			LIMIT $4
			FOR UPDATE SKIP LOCKED),
		gone AS (
			DELETE FROM {table}
			WHERE ctid = ANY (ARRAY(SELECT ctid FROM over)))
		SELECT count(*), coalesce(max(at)::text, $3::text) FROM over`)
}

// condition reads $1 the end of retention, $2 the same in the order's own form, $3 where to begin.
func (r retention) condition() string {
	kind := "text"
	if r.idPrefix == "" {
		kind = "timestamptz"
	}
	where := fmt.Sprintf("%[1]s >= $3::text::%[2]s AND %[1]s < $2::text::%[2]s", r.orderColumn, kind)
	if r.expiryColumn != "" {
		return where + " AND " + r.expiryColumn + " < $1::timestamptz"
	}
	return where + " AND $1::timestamptz IS NOT NULL" // Postgres wants to know the type of every argument
}

// startCursor is before every row.
func (r retention) startCursor() string {
	if r.idPrefix != "" {
		return ""
	}
	return "-infinity"
}

// cutoff is the end of retention: what is at it or after it stays.
func (r retention) cutoff(now time.Time) string {
	end := now.Add(-r.period)
	if r.idPrefix != "" {
		return id.LowerBound(r.idPrefix, end)
	}
	return end.UTC().Format(time.RFC3339Nano)
}
