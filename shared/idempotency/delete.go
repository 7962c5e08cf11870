package idempotency

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// QueueDelete adds the deletion of a session's records, a single statement, to a batch. Call
// DeleteCopies first: DeleteCopies finds the copies in Redis by the records. QueueDelete sends
// nothing and cannot fail; the statement may run twice.
func QueueDelete(batch *pgx.Batch, sessionID string) {
	batch.Queue(`
		DELETE FROM bff_consumer.idempotency_keys
		WHERE guest_session_id = $1`, sessionID)
}

// DeleteCopies deletes from Redis the copies and the claims of a session's recorded keys. Without
// the claim, a request still running cannot store a copy afterwards. The claim of a key without a
// record stays and expires after 2.5 s. DeleteCopies takes a query of Postgres and, with records, a
// pipeline with a DEL per record; ctx and the timeouts of the clients bound both. Without Postgres
// or Redis, or after the end of ctx, it returns an error, and some copies may be deleted. The call
// may be repeated until QueueDelete has run.
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
