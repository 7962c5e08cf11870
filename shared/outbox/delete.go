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

// DeleteUnsent adds to batch a statement that deletes the unpublished rows of a session, except its
// session.ended.v1. The statement skips rows that a relay is marking at this moment: they were sent. A
// relay that has read a deleted row and not sent it yet does not send it after the erasure of the
// session is committed (Batch.Consents). DeleteUnsent itself sends nothing and cannot fail.
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

// ReadUnsent adds to batch a query for the payloads of a session's unpublished rows. When the batch
// runs, into receives them, oldest first. ReadUnsent itself sends nothing and cannot fail.
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

// bufferChunk is the number of buffered rows that a script examines in a call, in about 1 ms of Redis.
const bufferChunk = 1_000

// ReadBuffered returns the payloads of a session's rows in the Redis buffer, oldest first. It takes a
// round trip for every 1,000 rows of the buffer, at least one; the buffer is empty unless Postgres was
// unavailable a moment ago. Each round trip takes at most the long timeout of redisclient. It fails
// without Redis.
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

// DeleteBuffered deletes a session's rows from the Redis buffer. It reads the buffer as ReadBuffered
// does, and takes one more round trip when it finds rows. It may miss a row that a relay moves to
// Postgres meanwhile: record the end of the session in session_choice first, so that the insert of that
// row writes nothing. It fails without Redis.
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

// scanBuffered returns the buffered values of a session. It scans from the oldest row on: new rows do
// not change the positions from that end.
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
