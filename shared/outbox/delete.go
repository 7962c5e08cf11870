package outbox

import (
	"context"
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/jackc/pgx/v5"

	"melmastoon.ghasi.io/bff-consumer/shared/event"
	"melmastoon.ghasi.io/bff-consumer/shared/lua"
	"melmastoon.ghasi.io/bff-consumer/shared/redisclient"
)

// DeleteUnsent adds a statement to batch. The statement deletes the unpublished rows of a session,
// parked rows included, except session.ended.v1. Rows locked by another transaction at this moment,
// such as a relay's marks, were sent, and are skipped; the statement waits for no lock. A relay may
// have read a deleted row and not sent the row yet: the relay checks Batch.Consents before each
// request, unless its last check is at most 2 ms old. DeleteUnsent itself only queues and cannot
// fail; an error of Postgres is an error of the batch.
func DeleteUnsent(batch *pgx.Batch, sessionID string) {
	batch.Queue(`
		DELETE FROM bff_consumer.outbox
		WHERE id IN (
			SELECT id
			FROM bff_consumer.outbox
			WHERE headers ->> 'orderingKey' = $1
			  AND published_at IS NULL
			  AND topic <> $2
			FOR UPDATE SKIP LOCKED)`, sessionID, event.SessionEnded{}.Subject())
}

// ReadUnsent adds a query to batch for the payloads of a session's unpublished rows, parked rows
// included. When the batch runs, into receives the payloads, in the order of ids: an empty list
// without rows, nil after an error of Postgres, which is an error of the batch too. ReadUnsent
// itself only queues and cannot fail.
func ReadUnsent(batch *pgx.Batch, sessionID string, into *[]jsontext.Value) {
	batch.Queue(`
		SELECT payload
		FROM bff_consumer.outbox
		WHERE headers ->> 'orderingKey' = $1
		  AND published_at IS NULL
		ORDER BY id`, sessionID).Query(func(rows pgx.Rows) (err error) {
		*into, err = pgx.CollectRows(rows, pgx.RowTo[jsontext.Value])
		return err
	})
}

// bufferChunk is the number of buffered rows examined by a call of the script, in about 1 ms of
// Redis.
const bufferChunk = 1_000

// ReadBuffered returns the payloads of a session's rows in the Redis buffer, oldest first; nil
// without rows. ReadBuffered takes a round trip, and 1 ms of the Redis thread, for every 1,000 rows
// of the buffer, and a single round trip for an empty buffer, the normal case. Each round trip has
// the long timeout of redisclient, 1 s for each write and read, and ends with ctx. A concurrent
// drain of more than 1,000 rows shifts the list, so ReadBuffered may miss rows then.
//
// ReadBuffered returns nil and an error without Redis, after the end of ctx, and for an undecodable
// row of the session.
func (r *Recorder) ReadBuffered(ctx context.Context, sessionID string) ([]jsontext.Value, error) {
	values, err := r.scanBuffered(ctx, sessionID)
	if err != nil {
		return nil, err
	}
	var messages []jsontext.Value
	for _, value := range values {
		var row Row
		if err := json.Unmarshal([]byte(value), &row); err != nil {
			return nil, fmt.Errorf("outbox: decode a buffered row: %w", err)
		}
		messages = append(messages, row.Payload)
	}
	return messages, nil
}

// DeleteBuffered deletes a session's rows from the Redis buffer. The scan costs as much as
// ReadBuffered; found rows cost another round trip, with the client's usual timeouts.
// DeleteBuffered may miss a row while a relay moves rows to Postgres: record the end of the session
// in session_choice first, so that the relay's insert skips the row. DeleteBuffered returns an
// error without Redis and after the end of ctx; some rows may be deleted then. A repetition deletes
// the rest.
func (r *Recorder) DeleteBuffered(ctx context.Context, sessionID string) error {
	values, err := r.scanBuffered(ctx, sessionID)
	if err != nil || len(values) == 0 {
		return err
	}
	pipe := r.rdb.Pipeline()
	for _, value := range values {
		pipe.LRem(ctx, r.bufferKey, -1, value)
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return fmt.Errorf("outbox: delete buffered rows: %w", err)
	}
	return nil
}

// scanBuffered returns the buffered values of a session. The scan begins with the oldest row: new
// rows do not move the positions at the old end.
func (r *Recorder) scanBuffered(ctx context.Context, sessionID string) (values []string, err error) {
	for first := int64(0); ; first += bufferChunk {
		found, more, err := lua.FindBuffered(ctx, redisclient.WithLongTimeout(r.rdb), r.bufferKey, sessionID, first, bufferChunk)
		if err != nil {
			return nil, fmt.Errorf("outbox: scan the buffer: %w", err)
		}
		values = append(values, found...)
		if !more {
			return values, nil
		}
	}
}
