// Package outbox owns the outbox table: events are added in the transaction that makes them true, or, when nothing but
// they is written, recorded by themselves. It never publishes.
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

// Row is one event as the table has it, and as JSON the form in which it waits in Redis while Postgres is away.
type Row struct {
	ID             string         `json:"id"`             // evt_<ulid>, what everybody deduplicates by
	Topic          string         `json:"topic"`          // the subject
	Payload        jsontext.Value `json:"payload"`        // the message: {"envelope": …, "payload": …}
	Headers        jsontext.Value `json:"headers"`        // its attributes, orderingKey among them
	RetentionClass string         `json:"retentionClass"` // "operational" or "audit"
}

// Add writes events in tx, all in one round trip; they are gone when tx rolls back. An event already there is left as
// it is, so a transaction may run twice. Events of a guest who refused them are left out, here and in every other way
// into the table (see insertRows).
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

// Queue puts the writing of events on a batch, so that it shares the transaction and the round trip of what they tell
// about. Like Add, it leaves an event already there as it is.
func Queue(b *pgx.Batch, events ...event.Event) error {
	rows, err := encodeAll(events)
	if err != nil || len(rows) == 0 {
		return err
	}
	sql, args := insertStatement(rows)
	b.Queue(sql, args...)
	return nil
}

// Encode makes the row of one event, for a statement that decides by itself whether to write it.
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

// execer is a transaction or the pool.
type execer interface {
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
}

// insertRows is the only way into the table but for statements that decide in the same breath whether there is
// something to tell. A guest who refused or cleared the session has the last word here, whoever writes and however
// old what the writer knows: an event of theirs is not written. Rows go in by id, whatever order they were told in: two
// writers of the same events, which a client may send twice at once, then wait for one another and cannot deadlock.
// Written out types spare the first use on a connection a round trip for them.
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

// insertRow is insertRows for one, which is what most are: a third of the work for Postgres.
const insertRow = `
	INSERT INTO bff_consumer.outbox (id, topic, payload, headers, retention_class)
	SELECT $1::text, $2::text, $3::jsonb, $4::jsonb, $5::text
	WHERE NOT EXISTS (
		SELECT
		FROM bff_consumer.session_choice AS c
		WHERE c.guest_session_id = $4::jsonb ->> 'orderingKey'
		  AND (NOT c.telemetry OR c.cleared_at IS NOT NULL))
	ON CONFLICT (id) DO NOTHING`

// insertStatement writes rows, at least one.
func insertStatement(rows []Row) (sql string, args []any) {
	if len(rows) == 1 {
		r := rows[0]
		// As text: a statement that Postgres does not describe first would be given bytes as bytea.
		return insertRow, []any{r.ID, r.Topic, string(r.Payload), string(r.Headers), r.RetentionClass}
	}
	return insertRows, insertArgs(rows)
}

func insert(ctx context.Context, db execer, rows []Row) error {
	_, err := insertCount(ctx, db, rows)
	return err
}

// insertCount is insert that says how many rows were written.
func insertCount(ctx context.Context, db execer, rows []Row) (written int, err error) {
	if len(rows) == 0 {
		return 0, nil
	}
	sql, args := insertStatement(rows)
	tag, err := db.Exec(ctx, sql, append([]any{pgx.QueryExecModeExec}, args...)...)
	return int(tag.RowsAffected()), err
}

// insertArgs are the arguments of insertRows.
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
