package idempotency

import (
	"time"

	"github.com/jackc/pgx/v5"

	"melmastoon.ghasi.io/bff-consumer/shared/timestamp"
)

// StoredKey is one key on record, without the answer, which may hold a token.
type StoredKey struct {
	Route     string `json:"route"`
	Status    int    `json:"responseStatus"`
	CreatedAt string `json:"createdAt"`
	ExpiresAt string `json:"expiresAt"`
}

// QueueList reads, with what else is in batch, which keys of one session are on record, oldest first.
func QueueList(batch *pgx.Batch, sessionID string, into *[]StoredKey) {
	batch.Queue(`
		SELECT route, response_status, created_at, expires_at
		FROM bff_consumer.idempotency_keys
		WHERE guest_session_id = $1
		ORDER BY created_at`, sessionID).Query(func(rows pgx.Rows) (err error) {
		*into, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (h StoredKey, err error) {
			var created, expires time.Time
			err = row.Scan(&h.Route, &h.Status, &created, &expires)
			h.CreatedAt, h.ExpiresAt = timestamp.Format(created), timestamp.Format(expires)
			return h, err
		})
		return err
	})
}
