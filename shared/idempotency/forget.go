package idempotency

import (
	"context"
	"fmt"
	"time"

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
		pipe.Del(ctx, r.keys.Key("idem", composite)) // one by one: they are in different slots
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return fmt.Errorf("idempotency: forget: %w", err)
	}
	return nil
}

// Held is one key on record, without the answer, which may hold a token.
type Held struct {
	Route     string `json:"route"`
	Status    int    `json:"responseStatus"`
	CreatedAt string `json:"createdAt"`
	ExpiresAt string `json:"expiresAt"`
}

// List reads, with what else is in batch, which keys of one session are on record, oldest first.
func List(batch *pgx.Batch, sessionID string, into *[]Held) {
	batch.Queue(`
		SELECT route, response_status, created_at, expires_at
		FROM bff_consumer.idempotency_keys
		WHERE guest_session_id = $1
		ORDER BY created_at`, sessionID).Query(func(rows pgx.Rows) (err error) {
		*into, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (h Held, err error) {
			var created, expires time.Time
			err = row.Scan(&h.Route, &h.Status, &created, &expires)
			h.CreatedAt, h.ExpiresAt = stamp(created), stamp(expires)
			return h, err
		})
		return err
	})
}

// stamp writes a time as every body does: UTC with milliseconds.
func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }
