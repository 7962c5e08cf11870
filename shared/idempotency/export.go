package idempotency

import (
	"time"

	"github.com/jackc/pgx/v5"

	"melmastoon.ghasi.io/bff-consumer/shared/timestamp"
)

// StoredKey describes one record for a data export. It omits the response body, which may contain a
// token.
type StoredKey struct {
	Route     string `json:"route"`
	Status    int    `json:"responseStatus"`
	CreatedAt string `json:"createdAt"`
	ExpiresAt string `json:"expiresAt"`
}

// QueueList adds the query of one session's records to a batch, and sends nothing. Running the
// batch stores the records in *into, oldest first, expired ones included. An error of Postgres is
// an error of the batch.
func QueueList(batch *pgx.Batch, sessionID string, into *[]StoredKey) {
	batch.Queue(`
		SELECT route, response_status, created_at, expires_at
		FROM bff_consumer.idempotency_keys
		WHERE guest_session_id = $1
		ORDER BY created_at`, sessionID).Query(func(rows pgx.Rows) (err error) {
		*into, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (k StoredKey, err error) {
			var created, expires time.Time
			err = row.Scan(&k.Route, &k.Status, &created, &expires)
			k.CreatedAt, k.ExpiresAt = timestamp.Format(created), timestamp.Format(expires)
			return k, err
		})
		return err
	})
}
