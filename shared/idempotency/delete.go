package idempotency

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// QueueDelete adds the deletion of a session's records, a single statement, to a batch. Call
// DeleteCopies first: DeleteCopies finds the copies in Redis by the records.
func QueueDelete(batch *pgx.Batch, sessionID string) {
	batch.Queue(`
		DELETE FROM bff_consumer.idempotency_keys
		WHERE guest_session_id = $1`, sessionID)
}

// DeleteCopies deletes the copies and the claims of a session in Redis. Without the claim, a
// running request cannot store a copy afterwards. DeleteCopies takes a query and a pipeline with a
// DEL per record. Without Postgres or Redis it returns an error. The call may be repeated until
// QueueDelete has run.
func (s *Store) DeleteCopies(ctx context.Context, sessionID string) error {
	rows, _ := s.db.Query(ctx, `
		SELECT composite_key
		FROM bff_consumer.idempotency_keys
		WHERE guest_session_id = $1`, sessionID)
	compositeKeys, err := pgx.CollectRows(rows, pgx.RowTo[string]) // also returns Query's error
	if err != nil {
		return fmt.Errorf("idempotency: delete copies: %w", err)
	}
	pipe := s.rdb.Pipeline()
	for _, key := range compositeKeys {
		pipe.Del(ctx, s.redisKey(key)) // a command per key: the keys are in different slots
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return fmt.Errorf("idempotency: delete copies: %w", err)
	}
	return nil
}
