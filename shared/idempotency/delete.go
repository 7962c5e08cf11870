package idempotency

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// QueueDelete deletes, with what else is in batch, the record of what one session was answered; ForgetCopies before it, which
// finds the copies by the record.
func QueueDelete(batch *pgx.Batch, sessionID string) {
	batch.Queue(`
		DELETE FROM bff_consumer.idempotency_keys
		WHERE guest_session_id = $1`, sessionID)
}

// DeleteCopies deletes the copies of what one session was answered, and its claims with them, so that an answer which is
// under way does not become a copy after this. It may be repeated until Forget.
func (r *Store) DeleteCopies(ctx context.Context, sessionID string) error {
	rows, _ := r.db.Query(ctx, `
		SELECT composite_key
		FROM bff_consumer.idempotency_keys
		WHERE guest_session_id = $1`, sessionID)
	composites, err := pgx.CollectRows(rows, pgx.RowTo[string]) // carries Query's error too
	if err != nil {
		return fmt.Errorf("idempotency: forget: %w", err)
	}
	pipe := r.rdb.Pipeline()
	for _, composite := range composites {
		pipe.Del(ctx, r.redisKey(composite)) // one by one: they are in different slots
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return fmt.Errorf("idempotency: forget: %w", err)
	}
	return nil
}
