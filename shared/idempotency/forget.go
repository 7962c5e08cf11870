package idempotency

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// Forget deletes, with what else is in batch, the record of what one session was answered, and says under which keys;
// ForgetCopies does the rest.
func Forget(batch *pgx.Batch, sessionID string, into *[]string) {
	batch.Queue(`
		DELETE FROM bff_consumer.idempotency_keys
		WHERE guest_session_id = $1
		RETURNING composite_key`, sessionID).Query(func(rows pgx.Rows) (err error) {
		*into, err = pgx.CollectRows(rows, pgx.RowTo[string])
		return err
	})
}

// ForgetCopies deletes the copies of answers that Forget named.
func (r *Room) ForgetCopies(ctx context.Context, composites []string) error {
	if len(composites) == 0 {
		return nil
	}
	pipe := r.rdb.Pipeline()
	for _, composite := range composites {
		pipe.Del(ctx, r.key(composite)) // one by one: they are in different slots
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return fmt.Errorf("idempotency: forget: %w", err)
	}
	return nil
}
