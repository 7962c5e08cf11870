package outbox

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"melmastoon.ghasi.io/bff-consumer/shared/event"
)

// The outbox has 33 shards: a shard for each of the 32 last characters of a session id, and the
// shard "" of rows without a session and without an order. A relay locks a shard while sending rows
// of the shard, so two relays never send rows of the same session at the same time.

// shardExpr and sessionExpr are the first two columns of the index ix_outbox_lane. Postgres uses
// the index only for expressions written as in the definition of the index.
const (
	shardExpr   = `coalesce(right(o.headers ->> 'orderingKey', 1), '') COLLATE "C"`
	sessionExpr = `coalesce(o.headers ->> 'orderingKey', '') COLLATE "C"`
	isPending   = `o.published_at IS NULL AND o.parked_at IS NULL`
)

// maxBackoff is longer than every backoff. A later due_at was written by a wrong clock: the row is
// due now.
const maxBackoff = `interval '15 minutes'`

// isInBackoff is true when a refused row of the same session waits for its due time: such a row
// holds back the later rows of its session. With EXISTS instead of the subselect, Postgres would
// read all refused rows first, once there are many.
const isInBackoff = `(
				SELECT true
				FROM bff_consumer.outbox AS h
				WHERE h.headers ->> 'orderingKey' = o.headers ->> 'orderingKey'
				  AND h.published_at IS NULL AND h.parked_at IS NULL AND h.attempts > 0
				  AND h.due_at > $1 AND h.due_at <= $1 + ` + maxBackoff + `
				LIMIT 1) IS NOT NULL`

// isUnorderedDue is true for a due row without a session. Such a row holds back no other row.
const isUnorderedDue = `(o.due_at IS NULL OR o.due_at NOT BETWEEN $1 AND $1 + ` + maxBackoff + `)`

// isOptedOut returns a condition: the guest of session s refused telemetry, or cleared the session
// and topic is not session.ended.v1.
func isOptedOut(s, topic string) string {
	return `EXISTS (
		SELECT
		FROM bff_consumer.session_choice AS c
		WHERE c.guest_session_id = ` + s + `
		  AND (NOT c.telemetry OR c.cleared_at IS NOT NULL AND ` + topic + ` <> '` + event.SessionEnded{}.Subject() + `'))`
}

// maxSkippedSessions limits the sessions in backoff skipped by selectDueShards in a shard. With
// more sessions in backoff, for example when a topic is missing, the shard counts as due, and
// ClaimBatch looks for due rows: so the poll stays short and does not delay the other shards.
const maxSkippedSessions = 200

// selectDueShards walks along the index: from a session in backoff to the next session, and from a
// due session to the next shard. So it costs an index probe for each shard and each session in
// backoff, however long the backlog is. U+10FFFF sorts after every session id.
var selectDueShards = `
	WITH RECURSIVE walk (shard, session, held, skipped) AS (
		SELECT ''::text COLLATE "C", ''::text COLLATE "C", false, 0
		UNION ALL
		SELECT n.shard, n.session, n.held AND n.skipped < ` + strconv.Itoa(maxSkippedSessions) + `, n.skipped
		FROM walk AS w
		CROSS JOIN LATERAL (
			SELECT ` + shardExpr + ` AS shard, ` + sessionExpr + ` AS session, ` + isInBackoff + ` AS held,
			       CASE WHEN w.held AND ` + shardExpr + ` = w.shard THEN w.skipped + 1 ELSE 0 END AS skipped
			FROM bff_consumer.outbox AS o
			WHERE ` + isPending + `
			  AND (` + shardExpr + `, ` + sessionExpr + `) > (w.shard, CASE WHEN w.held THEN w.session ELSE U&'\+10FFFF' END)
			ORDER BY 1, 2
			LIMIT 1) AS n
	)
	SELECT shard
	FROM walk
	WHERE NOT held AND shard <> ''
	UNION ALL
	SELECT ''
	WHERE EXISTS (
		SELECT
		FROM bff_consumer.outbox AS o
		WHERE ` + isPending + `
		  AND ` + shardExpr + ` = ''
		  AND ` + isUnorderedDue + `)`

// DueShards returns the shards with a row due at now, each once; the list is empty without such
// rows. A shard with more than 200 sessions in backoff counts as due without further search.
// DueShards costs a round trip (two at the first use of a connection) and an index probe for each
// shard and each skipped session, independent of the backlog, and takes no locks. DueShards returns
// nil and an error without Postgres and after the end of ctx, the only time limit.
func DueShards(ctx context.Context, db *pgxpool.Pool, now time.Time) ([]string, error) {
	rows, _ := db.Query(ctx, selectDueShards, now)
	shards, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return nil, fmt.Errorf("outbox: read the due shards: %w", err)
	}
	return shards, nil
}

// selectAnyPending has an ORDER BY so that Postgres uses ix_outbox_lane, whatever the statistics
// say.
const selectAnyPending = `
	SELECT true
	FROM bff_consumer.outbox AS o
	WHERE ` + isPending + `
	ORDER BY ` + shardExpr + `, ` + sessionExpr + `
	LIMIT 1`

// HasPending reports whether any row is pending, due or not, with a round trip and an index probe
// and without locks. On a new connection HasPending takes half the time of DueShards, because
// Postgres reads less of the catalogue. A run sends the query once, so the query is not prepared.
// HasPending returns false and an error without Postgres and after the end of ctx, the only time
// limit.
func HasPending(ctx context.Context, db *pgxpool.Pool) (bool, error) {
	var pending bool
	switch err := db.QueryRow(ctx, selectAnyPending, pgx.QueryExecModeExec).Scan(&pending); {
	case errors.Is(err, pgx.ErrNoRows):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("outbox: read a pending row: %w", err)
	}
	return pending, nil
}

// Pending is a due row of a batch.
type Pending struct {
	ID       string
	Topic    string
	Session  string // "" for a row without a session and without an order
	Payload  string // JSON, not validated
	Headers  string // JSON, not validated
	Attempts int    // refusals so far
	OptedOut bool   // the guest refused telemetry: do not send the row
}

// lockNamespace is the first key of the advisory locks of shards; the second key is the hash of the
// shard's name. No other advisory lock of the service has two keys.
const lockNamespace = 0x6f757462

const selectTryLock = `SELECT pg_try_advisory_xact_lock($1, hashtext($2)), current_setting('transaction_read_only') = 'on'`

// selectPending walks from session to session, skips sessions in backoff, and reads the pending
// rows of each session in the order of ids, up to $4 rows. Without the shard's lock selectPending
// returns no row.
var selectPending = `
	WITH RECURSIVE walk (session, held) AS (
		SELECT $3::text COLLATE "C", true
		UNION ALL
		SELECT n.*
		FROM walk AS w
		CROSS JOIN LATERAL (
			SELECT ` + sessionExpr + ` AS session, ` + isInBackoff + ` AS held
			FROM bff_consumer.outbox AS o
			WHERE ` + isPending + `
			  AND ` + shardExpr + ` = $2
			  AND ` + sessionExpr + ` > w.session
			ORDER BY 1
			LIMIT 1) AS n
	)
	SELECT r.id::text, r.topic, w.session, r.payload, r.headers, r.attempts, ` + isOptedOut("w.session", "r.topic") + `
	FROM walk AS w
	CROSS JOIN LATERAL (
		SELECT o.id, o.topic, o.payload::text, o.headers::text, o.attempts
		FROM bff_consumer.outbox AS o
		WHERE ` + isPending + `
		  AND ` + shardExpr + ` = $2
		  AND ` + sessionExpr + ` = w.session
		ORDER BY o.id
		LIMIT $4) AS r
	WHERE NOT w.held AND (SELECT pg_try_advisory_xact_lock($5, hashtext($2)))
	LIMIT $4`

// selectUnordered is selectPending for the shard "", where a row in backoff holds back only itself.
const selectUnordered = `
	SELECT o.id::text, o.topic, '', o.payload::text, o.headers::text, o.attempts, false
	FROM bff_consumer.outbox AS o
	WHERE ` + isPending + `
	  AND ` + shardExpr + ` = $2
	  AND ` + isUnorderedDue + `
	  AND o.id > $3
	  AND (SELECT pg_try_advisory_xact_lock($5, hashtext($2)))
	ORDER BY o.id
	LIMIT $4`

// errReadOnly is the error of ClaimBatch while the database is read-only, as during a failover:
// rows could be sent but not marked, and would be sent again until the failover ends.
var errReadOnly = errors.New("the database is read-only")

// Batch is the claimed rows of a shard and the open transaction that holds the shard's lock. A
// batch holds a connection of the pool until the call of Mark or Release. Not safe for concurrent
// use.
type Batch struct {
	Rows []Pending // by session, in the order of ids
	Next string    // the cursor of the shard's next batch; "" after the last row

	conn *pgxpool.Conn
}

// ClaimBatch begins a transaction, locks the shard and reads up to n due rows after cursor: "" or
// the Next of an earlier batch. n must be positive; 0 panics. ClaimBatch returns nil and no error
// when another relay holds the shard, and never waits for the lock. Without due rows the Batch is
// empty and still holds lock and connection. The lock is an advisory lock of the transaction, so a
// crash of the relay releases the lock, and Postgres ends the transaction when the relay is silent
// for longer than idle, in whole milliseconds.
//
// The rows are not locked: erasures, sweeps and operators can change the rows meanwhile.
//
// A claim is a single round trip on an idle connection of the pool (two at the first use of the
// connection), after the wait for a free connection; a shard held by another relay costs another
// round trip, the rollback. The payloads of n rows are held in memory. ClaimBatch returns nil and
// an error without Postgres, after the end of ctx, and while the database is read-only; the
// connection is back in the pool or closed then.
func ClaimBatch(ctx context.Context, db *pgxpool.Pool, shard, cursor string, n int, now time.Time, idle time.Duration) (_ *Batch, err error) {
	conn, err := db.Acquire(ctx)
	if err != nil {
		return nil, fmt.Errorf("outbox: claim shard %q: %w", shard, err)
	}
	b := &Batch{conn: conn}
	defer func() {
		if err != nil {
			b.Release(ctx)
			err = fmt.Errorf("outbox: claim shard %q: %w", shard, err)
		}
	}()
	sql := selectPending
	if shard == "" {
		sql = selectUnordered
	}
	// The lock is a statement of its own before the SELECT, so that the SELECT sees the marks of
	// the previous owner of the shard.
	var locked, readOnly bool
	var all pgx.Batch
	// READ COMMITTED, so that Consents sees refusals committed after BEGIN.
	all.Queue("BEGIN ISOLATION LEVEL READ COMMITTED")
	all.Queue(fmt.Sprintf("SET LOCAL idle_in_transaction_session_timeout = %d", idle.Milliseconds()))
	all.Queue(selectTryLock, lockNamespace, shard).QueryRow(func(row pgx.Row) error { return row.Scan(&locked, &readOnly) })
	all.Queue(sql, now, shard, cursor, n, lockNamespace).Query(func(rows pgx.Rows) (err error) {
		b.Rows, err = pgx.CollectRows(rows, pgx.RowToStructByPos[Pending])
		return err
	})
	if err := conn.SendBatch(ctx, &all).Close(); err != nil {
		return nil, err
	}
	if readOnly {
		return nil, errReadOnly
	}
	if !locked {
		b.Release(ctx)
		return nil, nil
	}
	if len(b.Rows) == n {
		last := b.Rows[n-1]
		if b.Next = last.Session; shard == "" {
			b.Next = last.ID
		}
	}
	return b, nil
}

// Consent limits the events of a guest who refused telemetry or cleared the session. A nil Consent
// limits nothing.
type Consent struct {
	EndOnly bool // the guest cleared the session: only session.ended.v1 is sent; false: no event is sent
}

// Blocks reports whether rows of the topic must not be sent. A nil Consent blocks no topic.
func (c *Consent) Blocks(topic string) bool {
	return c != nil && !(c.EndOnly && topic == event.SessionEnded{}.Subject())
}

const selectConsents = `
	SELECT guest_session_id, telemetry
	FROM bff_consumer.session_choice
	WHERE guest_session_id = ANY($1)
	  AND (NOT telemetry OR cleared_at IS NOT NULL)`

// Consents returns the current limits of the sessions whose guests refused telemetry or cleared the
// session, by session id; other sessions are absent. Consents takes a round trip in the batch's
// transaction and no locks, and must not run concurrently with another method of b, nor after Mark
// or Release: that panics. Consents returns nil and an error without Postgres and after the end of
// ctx; the transaction is unusable then, so call Release.
func (b *Batch) Consents(ctx context.Context, sessions []string) (map[string]*Consent, error) {
	found := map[string]*Consent{}
	rows, err := b.conn.Query(ctx, selectConsents, sessions)
	if err == nil {
		var id string
		var telemetry bool
		_, err = pgx.ForEachRow(rows, []any{&id, &telemetry}, func() error {
			found[id] = &Consent{EndOnly: telemetry}
			return nil
		})
	}
	if err != nil {
		return nil, fmt.Errorf("outbox: read consents: %w", err)
	}
	return found, nil
}

// Rejection is the permanent refusal of a row.
type Rejection struct {
	ID     string
	Reason string    // for last_error
	Due    time.Time // the next attempt, unless the row is parked
	Park   bool      // give the row up
}

// Marks are the results of a batch.
type Marks struct {
	Published []string // ids of accepted rows
	Rejected  []Rejection
	OptedOut  []string // sessions; Mark deletes the unpublished rows blocked by the guest's consent
}

const markPublished = `
	UPDATE bff_consumer.outbox
	SET published_at = $2
	WHERE id = ANY($1) AND published_at IS NULL`

const markRejected = `
	UPDATE bff_consumer.outbox AS o
	SET attempts = o.attempts + 1,
	    last_error = r.reason,
	    due_at = r.due,
	    parked_at = CASE WHEN r.park THEN $5::timestamptz END
	FROM unnest($1::text[], $2::text[], $3::timestamptz[], $4::boolean[]) AS r (id, reason, due, park)
	WHERE o.id = r.id AND o.published_at IS NULL AND o.parked_at IS NULL`

var deleteOptedOut = `
	DELETE FROM bff_consumer.outbox AS o
	WHERE o.headers ->> 'orderingKey' = ANY($1)
	  AND o.published_at IS NULL
	  AND ` + isOptedOut("o.headers ->> 'orderingKey'", "o.topic")

// Mark records the results, commits, which unlocks the shard, and returns the connection to the
// pool: a single round trip (two when the connection first prepares the statements), plus the
// rollback of Release after a failure. Mark waits for rows under another transaction's lock. now
// becomes published_at. Rows published, parked (rejections only) or deleted meanwhile are skipped.
// dropped is the number of rows deleted for consent; Mark checks the consent again in the DELETE.
//
// Mark returns 0 and an error without Postgres and after the end of ctx. Nothing is recorded then,
// unless the reply to the commit was lost, and published rows are sent again. b is finished in
// either case; a second call panics.
func (b *Batch) Mark(ctx context.Context, m Marks, now time.Time) (dropped int64, err error) {
	var all pgx.Batch
	if len(m.OptedOut) > 0 {
		all.Queue(deleteOptedOut, m.OptedOut).Exec(func(tag pgconn.CommandTag) error { dropped = tag.RowsAffected(); return nil })
	}
	if len(m.Published) > 0 {
		all.Queue(markPublished, m.Published, now)
	}
	if len(m.Rejected) > 0 {
		var ids, reasons []string
		var dues []time.Time
		var parks []bool
		for _, r := range m.Rejected {
			ids, reasons, dues, parks = append(ids, r.ID), append(reasons, r.Reason), append(dues, r.Due), append(parks, r.Park)
		}
		all.Queue(markRejected, ids, reasons, dues, parks, now)
	}
	all.Queue("COMMIT")
	defer b.Release(ctx)
	if err := b.conn.SendBatch(ctx, &all).Close(); err != nil {
		return 0, fmt.Errorf("outbox: mark %d published and %d rejected rows: %w", len(m.Published), len(m.Rejected), err)
	}
	return dropped, nil
}

// Release rolls the transaction back, which unlocks the shard, and returns the connection to the
// pool: a single round trip, limited by ctx. After a failed rollback, or with a cancelled ctx,
// Release closes the connection, and so unlocks the shard too. Release reports no error. A call
// after Mark or Release does nothing.
func (b *Batch) Release(ctx context.Context) {
	if b.conn == nil {
		return
	}
	if c := b.conn.Conn(); !c.IsClosed() && c.PgConn().TxStatus() != 'I' {
		c.Exec(ctx, "ROLLBACK")
	}
	b.conn.Release()
	b.conn = nil
}
