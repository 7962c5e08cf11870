package sweep

import (
	"context"
	"fmt"
	"strings"
	"time"

	"melmastoon.ghasi.io/bff-consumer/shared/id"
)

// retention is a rule of docs/spec/data-model.md#retention: it says when a row of a table is
// expired. A sweep finds expired rows by an index, in the order of the index.
type retention struct {
	name, path   string
	table        string
	orderColumn  string        // the indexed column
	idPrefix     id.Prefix     // of the ids in orderColumn, which sort by time; "" if the column is a time
	expiryColumn string        // a time that must be expired too; "" for none
	period       time.Duration // how long a row is kept
}

// retentions are the rules for tables. Outbox rows that were never published stay for an operator.
var retentions = []retention{
	{"SweepOutbox", "sweep-outbox", "outbox", "id", id.Event, "published_at", 30 * 24 * time.Hour},
	{"SweepInbox", "sweep-inbox", "inbox", "received_at", "", "", 7 * 24 * time.Hour},
	{"SweepParked", "sweep-parked", "inbox_parked", "received_at", "", "", 30 * 24 * time.Hour},
	{"SweepHandoffs", "sweep-handoffs", "handoff_replay_log", "id", id.Handoff, "minted_at", 24 * time.Hour},
	{"SweepWishlist", "sweep-wishlist", "wishlist_anonymous", "removed_at", "", "", 30 * 24 * time.Hour},
	{"SweepBotScores", "sweep-bot-scores", "bot_score_log", "evaluated_at", "", "", 7 * 24 * time.Hour},
	{"SweepIdempotency", "sweep-idempotency", "idempotency_keys", "expires_at", "", "", 0},
	// A session id is valid for 365 days; a day more allows for a slow clock.
	{"SweepChoices", "sweep-choices", "session_choice", "guest_session_id", id.Session, "", 366 * 24 * time.Hour},
}

// batchSize is the number of rows of a DELETE. A DELETE takes some tens of milliseconds, so its row
// locks delay no request, and a failure repeats little work.
const batchSize = 5_000

// countLimit limits the count of a dry run, because counting is as slow as deleting.
const countLimit = 100_000

// tableSweeper deletes the expired rows of a table.
type tableSweeper struct {
	db   database
	rule retention
}

// sweep deletes up to 5,000 rows with each statement, one round trip, and skips rows that another
// run has locked. It fails without Postgres.
func (s tableSweeper) sweep(ctx context.Context, now time.Time, timeUp func() bool) (removed int64, more bool, err error) {
	remove, from := s.rule.deleteStatement(), s.rule.startCursor()
	for {
		var n int64
		// The next statement starts at the last deleted row: deleted rows stay in the index until a
		// vacuum.
		err := s.db.QueryRow(ctx, remove, now.Add(-s.rule.period), s.rule.cutoff(now), from, batchSize).Scan(&n, &from)
		if err != nil {
			return removed, false, fmt.Errorf("sweep: %s: %w", s.rule.table, err)
		}
		removed += n
		if n < batchSize {
			return removed, false, nil
		}
		if timeUp() {
			return removed, true, nil
		}
	}
}

// count counts up to 100,000 expired rows in one round trip. It fails without Postgres.
func (s tableSweeper) count(ctx context.Context, now time.Time) (n int64, more bool, err error) {
	sql := "SELECT count(*) FROM (SELECT FROM bff_consumer." + s.rule.table + " WHERE " + s.rule.condition() + " LIMIT $4) AS expired"
	err = s.db.QueryRow(ctx, sql, now.Add(-s.rule.period), s.rule.cutoff(now), s.rule.startCursor(), countLimit).Scan(&n)
	if err != nil {
		return 0, false, fmt.Errorf("sweep: count %s: %w", s.rule.table, err)
	}
	return n, n == countLimit, nil
}

// deleteStatement returns the DELETE of a batch of $4 rows. Its result is the number of rows and
// the cursor of the next batch. It skips rows that another run has locked.
func (r retention) deleteStatement() string {
	return strings.NewReplacer("{table}", "bff_consumer."+r.table, "{order}", r.orderColumn, "{where}", r.condition()).Replace(`
		WITH expired AS (
			SELECT ctid, {order} AS at
			FROM {table}
			WHERE {where}
			ORDER BY {order}
			LIMIT $4
			FOR UPDATE SKIP LOCKED),
		deleted AS (
			DELETE FROM {table}
			WHERE ctid = ANY (ARRAY(SELECT ctid FROM expired)))
		SELECT count(*), coalesce(max(at)::text, $3::text) FROM expired`)
}

// condition returns the WHERE clause of expired rows. $1 is the cutoff time, $2 the cutoff in the
// form of orderColumn, $3 the cursor.
func (r retention) condition() string {
	kind := "text"
	if r.idPrefix == "" {
		kind = "timestamptz"
	}
	where := fmt.Sprintf("%[1]s >= $3::text::%[2]s AND %[1]s < $2::text::%[2]s", r.orderColumn, kind)
	if r.expiryColumn != "" {
		return where + " AND " + r.expiryColumn + " < $1::timestamptz"
	}
	return where + " AND $1::timestamptz IS NOT NULL" // Postgres must infer the type of every argument
}

// startCursor returns a cursor before every row.
func (r retention) startCursor() string {
	if r.idPrefix != "" {
		return ""
	}
	return "-infinity"
}

// cutoff returns the end of retention in the form of orderColumn. Rows at the cutoff or later stay.
func (r retention) cutoff(now time.Time) string {
	end := now.Add(-r.period)
	if r.idPrefix != "" {
		return id.LowerBound(r.idPrefix, end)
	}
	return end.UTC().Format(time.RFC3339Nano)
}
