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

// DeleteUnsent deletes, with what else is in batch, what one session has not told yet, but for its end. Rows that a relay
// marks at this moment were sent, and are left to it. One that it has read and not sent yet it sends no more, once the
// session is buried.
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

// ReadUnsent reads, with what else is in batch, the messages of one session that were not published yet, oldest first.
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

// bufferChunk rows of the spill are looked through at a time, in about a millisecond of Redis.
const bufferChunk = 1_000

// ReadBuffered returns the messages of one session that wait in Redis for Postgres to come back, oldest first.
func (r *Recorder) ReadBuffered(ctx context.Context, sessionID string) ([]jsontext.Value, error) {
	values, err := r.scanBuffered(ctx, sessionID)
	if err != nil {
		return nil, err
	}
	var messages []jsontext.Value
	for _, value := range values {
		var row Row
		if err := json.Unmarshal([]byte(value), &row); err != nil {
			return nil, fmt.Errorf("outbox: decode a spilled row: %w", err)
		}
		messages = append(messages, row.Payload)
	}
	return messages, nil
}

// DeleteBuffered deletes what of one session waits in Redis. A row that a relay moves to Postgres meanwhile may escape
// it; whoever forgets a session first records that it is over, and then the insert of such a row writes nothing.
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
		return fmt.Errorf("outbox: forget spilled rows: %w", err)
	}
	return nil
}

// scanBuffered looks from the oldest row on, which new ones do not move. The list is empty unless Postgres was away a
// moment ago: then this costs one question.
func (r *Recorder) scanBuffered(ctx context.Context, sessionID string) (values []string, err error) {
	for first := int64(0); ; first += bufferChunk {
		found, more, err := lua.FindBuffered(ctx, redisclient.WithLongTimeout(r.rdb), r.bufferKey, sessionID, first, bufferChunk)
		if err != nil {
			return nil, fmt.Errorf("outbox: look for spilled rows: %w", err)
		}
		values = append(values, found...)
		if !more {
			return values, nil
		}
	}
}
