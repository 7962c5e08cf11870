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

// A lane is all rows of the sessions whose id ends in one character: 32 of them, and one, named "", of rows that belong
// to no session and have no order. Who sends rows has their lane meanwhile, so that the rows of a session are sent by
// one at a time.

// shardExpr and sessionOf are the first two columns of ix_outbox_lane, and have to be written as they are there.
const (
	shardExpr   = `coalesce(right(o.headers ->> 'orderingKey', 1), '') COLLATE "C"`
	sessionExpr = `coalesce(o.headers ->> 'orderingKey', '') COLLATE "C"`
	isPending   = `o.published_at IS NULL AND o.parked_at IS NULL`
)

// maxBackoff is more than any back-off. What is due later than that was written by a clock that was wrong, and is due now.
const maxBackoff = `interval '15 minutes'`

// isInBackoff says that a row of the same session was refused and is not to be tried again yet: it holds back all that come after it.
// Written with EXISTS, Postgres would first read all that are held, once there are many.
const isInBackoff = `(
				SELECT true
				FROM bff_consumer.outbox AS h
				WHERE h.headers ->> 'orderingKey' = o.headers ->> 'orderingKey'
				  AND h.published_at IS NULL AND h.parked_at IS NULL AND h.attempts > 0
				  AND h.due_at > $1 AND h.due_at <= $1 + ` + maxBackoff + `
				LIMIT 1) IS NOT NULL`

// isUnorderedDue is the same of a row without a session, which holds back itself alone.
const isUnorderedDue = `(o.due_at IS NULL OR o.due_at NOT BETWEEN $1 AND $1 + ` + maxBackoff + `)`

// isOptedOut says that the guest of session s refused, or cleared it, so that rows of that topic are not sent.
func isOptedOut(s, topic string) string {
	return `EXISTS (
		SELECT
		FROM bff_consumer.session_choice AS c
		WHERE c.guest_session_id = ` + s + `
		  AND (NOT c.telemetry OR c.cleared_at IS NOT NULL AND ` + topic + ` <> '` + event.SessionEnded{}.Subject() + `'))`
}

// maxSkippedSessions is how many held sessions of a lane are passed by in a look. With more, as when a topic is missing, somebody goes
// there and sees: looks stay short, so that those of other lanes are not late.
const maxSkippedSessions = 200

// selectDueShards walks along the index: from a session that is held to the next one, from one that is not to the next lane. So it
// costs a look per lane and held session, whatever is behind them. U+10FFFF comes after every id.
var selectDueShards = `
	WITH RECURSIVE walk (lane, session, held, passed) AS (
		SELECT ''::text COLLATE "C", ''::text COLLATE "C", false, 0
		UNION ALL
		SELECT n.lane, n.session, n.held AND n.passed < ` + strconv.Itoa(maxSkippedSessions) + `, n.passed
		FROM walk AS w
		CROSS JOIN LATERAL (
			SELECT ` + shardExpr + ` AS lane, ` + sessionExpr + ` AS session, ` + isInBackoff + ` AS held,
			       CASE WHEN w.held AND ` + shardExpr + ` = w.lane THEN w.passed + 1 ELSE 0 END AS passed
			FROM bff_consumer.outbox AS o
			WHERE ` + isPending + `
			  AND (` + shardExpr + `, ` + sessionExpr + `) > (w.lane, CASE WHEN w.held THEN w.session ELSE U&'\+10FFFF' END)
			ORDER BY 1, 2
			LIMIT 1) AS n
	)
	SELECT lane
	FROM walk
	WHERE NOT held AND lane <> ''
	UNION ALL
	SELECT ''
	WHERE EXISTS (
		SELECT
		FROM bff_consumer.outbox AS o
		WHERE ` + isPending + `
		  AND ` + shardExpr + ` = ''
		  AND ` + isUnorderedDue + `)`

// DueShards names the lanes in which something may be sent now, and those in which so many are held that it was not looked to the
// end.
func DueShards(ctx context.Context, db *pgxpool.Pool, now time.Time) ([]string, error) {
	rows, _ := db.Query(ctx, selectDueShards, now)
	lanes, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return nil, fmt.Errorf("outbox: look for what is due: %w", err)
	}
	return lanes, nil
}

// selectAnyPending has an order so that it goes by the index of lanes, however many rows Postgres believes to be waiting.
const selectAnyPending = `
	SELECT true
	FROM bff_consumer.outbox AS o
	WHERE ` + isPending + `
	ORDER BY ` + shardExpr + `, ` + sessionExpr + `
	LIMIT 1`

// HasPending reports whether any row waits, due or not. On a new connection it is answered in half the time that Due is: Postgres
// has less of its catalogue to read first. It is not prepared, because a run asks it once.
func HasPending(ctx context.Context, db *pgxpool.Pool) (bool, error) {
	var waits bool
	switch err := db.QueryRow(ctx, selectAnyPending, pgx.QueryExecModeExec).Scan(&waits); {
	case errors.Is(err, pgx.ErrNoRows):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("outbox: look whether anything waits: %w", err)
	}
	return waits, nil
}

// Pending is a row that is due.
type Pending struct {
	ID       string
	Topic    string
	Session  string // empty: it has no order
	Payload  string // JSON, of whatever form
	Headers  string // JSON, of whatever form
	Attempts int    // refusals so far
	OptedOut bool   // the guest refused: not to be sent
}

// lockNamespace is the first half of the advisory locks of lanes; the second is the lane. No other lock here has two halves.
const lockNamespace = 0x6f757462

const selectTryLock = `SELECT pg_try_advisory_xact_lock($1, hashtext($2)), current_setting('transaction_read_only') = 'on'`

// selectPending goes from session to session, past those that are held, and takes of each what is waiting, in order,
// until it has enough. Who did not get the lane is given nothing.
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

// selectUnordered is selectPending for the lane without sessions, in which each row is held by itself alone.
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

// errReadOnly is Take's answer by a database that another one takes over from: what is sent could not be marked, and would
// be sent again and again until it has.
var errReadOnly = errors.New("the database only reads at present")

// Batch is some rows of one lane, and the transaction that has the lane. One of Mark and Release must be called.
type Batch struct {
	Rows []Pending // by session, in order
	Next string    // where the next batch of this lane begins; empty: this was the last of them

	conn *pgxpool.Conn
}

// ClaimBatch begins a transaction, tries to get a lane and reads at most n of its rows, after the place that an earlier batch
// named. It returns nil when somebody else has the lane. The transaction ends by itself when nothing is heard of its
// owner for idle, and so does the lane's lock: it is the connection's.
//
// The rows are not locked: who deletes or parks one meanwhile need not wait until it was sent.
func ClaimBatch(ctx context.Context, db *pgxpool.Pool, name, after string, n int, now time.Time, idle time.Duration) (_ *Batch, err error) {
	conn, err := db.Acquire(ctx)
	if err != nil {
		return nil, fmt.Errorf("outbox: take a lane: %w", err)
	}
	b := &Batch{conn: conn}
	defer func() {
		if err != nil {
			b.Release(ctx)
			err = fmt.Errorf("outbox: take lane %q: %w", name, err)
		}
	}()
	sql := selectPending
	if name == "" {
		sql = selectUnordered
	}
	// One round trip. The lock is a statement of its own and comes first, so that the rows are seen as whoever had the lane
	// before has left them.
	var ours, readOnly bool
	var all pgx.Batch
	// The isolation is what lets a later statement see a refusal that came meanwhile.
	all.Queue("BEGIN ISOLATION LEVEL READ COMMITTED")
	all.Queue(fmt.Sprintf("SET LOCAL idle_in_transaction_session_timeout = %d", idle.Milliseconds()))
	all.Queue(selectTryLock, lockNamespace, name).QueryRow(func(row pgx.Row) error { return row.Scan(&ours, &readOnly) })
	all.Queue(sql, now, name, after, n, lockNamespace).Query(func(rows pgx.Rows) (err error) {
		b.Rows, err = pgx.CollectRows(rows, pgx.RowToStructByPos[Pending])
		return err
	})
	if err := conn.SendBatch(ctx, &all).Close(); err != nil {
		return nil, err
	}
	if readOnly {
		return nil, errReadOnly
	}
	if !ours {
		b.Release(ctx)
		return nil, nil
	}
	if len(b.Rows) == n {
		last := b.Rows[n-1]
		if b.Next = last.Session; name == "" {
			b.Next = last.ID
		}
	}
	return b, nil
}

// Consent is what a guest who refused or cleared their session left to be told.
type Consent struct {
	EndOnly bool // nothing but its end; else nothing at all
}

// Blocks reports that rows of the topic are not to be sent. A guest without a choice, nil, silences nothing.
func (c *Consent) Blocks(topic string) bool {
	return c != nil && !(c.EndOnly && topic == event.SessionEnded{}.Subject())
}

const selectConsents = `
	SELECT guest_session_id, telemetry
	FROM bff_consumer.session_choice
	WHERE guest_session_id = ANY($1)
	  AND (NOT telemetry OR cleared_at IS NOT NULL)`

// Consents are those of the sessions whose guests have refused or cleared them by now. It must not be called by two at
// once.
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
		return nil, fmt.Errorf("outbox: ask for refusals: %w", err)
	}
	return found, nil
}

// Rejection is why a row was not taken, and when it is tried again.
type Rejection struct {
	ID     string
	Reason string
	Due    time.Time
	Park   bool // it is not
}

// Marks are what became of a batch.
type Marks struct {
	Published []string // ids
	Rejected  []Rejection
	OptedOut  []string // sessions whose waiting rows are deleted, so far as their guests refused them
}

const markPublished = `
	UPDATE bff_consumer.outbox
	SET published_at = $2
	WHERE id = ANY($1) AND published_at IS NULL`

const markRejected = `
	UPDATE bff_consumer.outbox AS o
	SET attempts = o.attempts + 1,
	    last_error = r.why,
	    due_at = r.due,
	    parked_at = CASE WHEN r.park THEN $5::timestamptz END
	FROM unnest($1::text[], $2::text[], $3::timestamptz[], $4::boolean[]) AS r (id, why, due, park)
	WHERE o.id = r.id AND o.published_at IS NULL AND o.parked_at IS NULL`

var deleteOptedOut = `
	DELETE FROM bff_consumer.outbox AS o
	WHERE o.headers ->> 'orderingKey' = ANY($1)
	  AND o.published_at IS NULL
	  AND ` + isOptedOut("o.headers ->> 'orderingKey'", "o.topic")

// Mark records what became of the rows and gives the lane back. When it fails, nothing is recorded.
func (b *Batch) Mark(ctx context.Context, m Marks, now time.Time) (dropped int64, err error) {
	var all pgx.Batch
	if len(m.OptedOut) > 0 {
		all.Queue(deleteOptedOut, m.OptedOut).Exec(func(tag pgconn.CommandTag) error { dropped = tag.RowsAffected(); return nil })
	}
	if len(m.Published) > 0 {
		all.Queue(markPublished, m.Published, now)
	}
	if len(m.Rejected) > 0 {
		var ids, whys []string
		var dues []time.Time
		var parks []bool
		for _, r := range m.Rejected {
			ids, whys, dues, parks = append(ids, r.ID), append(whys, r.Reason), append(dues, r.Due), append(parks, r.Park)
		}
		all.Queue(markRejected, ids, whys, dues, parks, now)
	}
	all.Queue("COMMIT")
	defer b.Release(ctx)
	if err := b.conn.SendBatch(ctx, &all).Close(); err != nil {
		return 0, fmt.Errorf("outbox: mark %d published and %d refused: %w", len(m.Published), len(m.Rejected), err)
	}
	return dropped, nil
}

// Release gives the lane back. A connection whose transaction cannot be ended is closed, which ends it too.
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
