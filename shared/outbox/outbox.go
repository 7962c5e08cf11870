// Package outbox owns the table outbox and its buffer in Redis. Add and Queue write events in the
// transaction of a mutation; Recorder writes events without a mutation. DueShards, ClaimBatch and
// Batch.Mark serve the relay. The package never publishes.
package outbox

import (
	"context"
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"melmastoon.ghasi.io/bff-consumer/shared/event"
)

// Row is an event in the form of the table. Elements of the Redis buffer are rows as JSON.
type Row struct {
	ID             string         `json:"id"`             // evt_<ulid>; consumers deduplicate by this id
	Topic          string         `json:"topic"`          // the subject
	Payload        jsontext.Value `json:"payload"`        // the message: {"envelope": …, "payload": …}
	Headers        jsontext.Value `json:"headers"`        // attributes of the message, including orderingKey
	RetentionClass string         `json:"retentionClass"` // "operational" or "audit"
}

// Add writes any number of events in tx, in a single round trip; without events Add does nothing.
// Add skips an event id already in the table, so a transaction may run twice. Like every insert of
// this package, Add skips an event of a guest with refused telemetry or a cleared session; a
// skipped event is no error. Add waits for a concurrent transaction with the same event id. ctx
// sets the time limit.
//
// Add returns an error when Postgres is unavailable or rejects a row, or ctx ends: tx is aborted
// then. An event without a JSON form is an error too, before anything is sent.
func Add(ctx context.Context, tx pgx.Tx, events ...event.Event) error {
	rows, err := encodeAll(events)
	if err != nil {
		return err
	}
	if err := insert(ctx, tx, rows); err != nil {
		return fmt.Errorf("outbox: add %d events: %w", len(rows), err)
	}
	return nil
}

// Queue adds the insert of events to a batch, so that the insert shares the transaction and the
// round trip of the mutation. The insert skips the same events as Add. Queue itself sends nothing.
// It fails only for an event without a JSON form, and then queues nothing; an error of Postgres is
// an error of the batch.
func Queue(b *pgx.Batch, events ...event.Event) error {
	rows, err := encodeAll(events)
	if err != nil || len(rows) == 0 {
		return err
	}
	sql, args := insertStatement(rows)
	b.Queue(sql, args...)
	return nil
}

// Encode returns the row of an event, for a caller with another insert statement. Encode only
// computes, and fails only for an event without a JSON form, with a zero Row.
func Encode(e event.Event) (Row, error) {
	payload, err := e.MarshalJSON()
	if err != nil {
		return Row{}, fmt.Errorf("outbox: encode %s: %w", e.ID, err)
	}
	headers, err := json.Marshal(e.Attributes(), json.Deterministic(true))
	if err != nil {
		return Row{}, fmt.Errorf("outbox: encode %s: %w", e.ID, err)
	}
	return Row{e.ID, e.Subject, payload, headers, string(e.RetentionClass)}, nil
}

func encodeAll(events []event.Event) ([]Row, error) {
	rows := make([]Row, len(events))
	for i, e := range events {
		var err error
		if rows[i], err = Encode(e); err != nil {
			return nil, err
		}
	}
	return rows, nil
}

// execer is a transaction or a pool.
type execer interface {
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
}

// insertRows and insertRow are the only inserts into the table, except the statement of
// shared/wishlist: a wishlist change decides in the same statement about its event.
//
// The NOT EXISTS enforces consent: an event of a guest with refused telemetry or a cleared session
// is not written, however old the writer's knowledge of the session is. ORDER BY id prevents
// deadlocks: two writers of the same events, for example of a request sent twice, lock the rows in
// the same order. The explicit casts save a round trip for types at the first use on a connection.
const insertRows = `
	INSERT INTO bff_consumer.outbox (id, topic, payload, headers, retention_class)
	SELECT id, topic, payload::jsonb, headers::jsonb, retention_class
	FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[])
	     AS e (id, topic, payload, headers, retention_class)
	WHERE NOT EXISTS (
		SELECT
		FROM bff_consumer.session_choice AS c
		WHERE c.guest_session_id = e.headers::jsonb ->> 'orderingKey'
		  AND (NOT c.telemetry OR c.cleared_at IS NOT NULL))
	ORDER BY id COLLATE "C"
	ON CONFLICT (id) DO NOTHING`

// insertRow is insertRows for a single row, the usual case: a third of the work for Postgres.
const insertRow = `
	INSERT INTO bff_consumer.outbox (id, topic, payload, headers, retention_class)
	SELECT $1::text, $2::text, $3::jsonb, $4::jsonb, $5::text
	WHERE NOT EXISTS (
		SELECT
		FROM bff_consumer.session_choice AS c
		WHERE c.guest_session_id = $4::jsonb ->> 'orderingKey'
		  AND (NOT c.telemetry OR c.cleared_at IS NOT NULL))
	ON CONFLICT (id) DO NOTHING`

// insertStatement returns the insert of rows and its arguments. rows must not be empty.
func insertStatement(rows []Row) (sql string, args []any) {
	if len(rows) == 1 {
		r := rows[0]
		// Strings, because pgx sends []byte as bytea to an undescribed statement.
		return insertRow, []any{r.ID, r.Topic, string(r.Payload), string(r.Headers), r.RetentionClass}
	}
	return insertRows, insertArgs(rows)
}

func insert(ctx context.Context, db execer, rows []Row) error {
	_, err := insertCount(ctx, db, rows)
	return err
}

// insertCount writes rows in a single round trip and returns the number of written rows.
func insertCount(ctx context.Context, db execer, rows []Row) (written int, err error) {
	if len(rows) == 0 {
		return 0, nil
	}
	sql, args := insertStatement(rows)
	tag, err := db.Exec(ctx, sql, append([]any{pgx.QueryExecModeExec}, args...)...)
	return int(tag.RowsAffected()), err
}

// insertArgs returns the arguments of insertRows: one array per column.
func insertArgs(rows []Row) []any {
	var ids, topics, payloads, headers, classes []string
	for _, r := range rows {
		ids = append(ids, r.ID)
		topics = append(topics, r.Topic)
		payloads = append(payloads, string(r.Payload))
		headers = append(headers, string(r.Headers))
		classes = append(classes, r.RetentionClass)
	}
	return []any{ids, topics, payloads, headers, classes}
}
