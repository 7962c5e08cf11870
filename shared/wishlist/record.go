package wishlist

import (
	"time"

	"github.com/jackc/pgx/v5"

	"melmastoon.ghasi.io/bff-consumer/shared/id"
	"melmastoon.ghasi.io/bff-consumer/shared/timestamp"
)

const selectSQL = `
	SELECT id::text, tenant_id, property_id, source, coalesce(note, ''), added_at, removed_at
	FROM bff_consumer.wishlist_anonymous
	WHERE guest_session_id = $1
	ORDER BY added_at`

// QueueRead queues the read of a wishlist, removed items included, on a batch, a single statement,
// and sends nothing. When the batch runs, *into becomes the list, empty for an unknown and for a
// cleared session alike. An error of Postgres is an error of the batch and leaves *into unchanged.
func QueueRead(batch *pgx.Batch, sessionID string, into *List) {
	batch.Queue(selectSQL, sessionID).Query(func(rows pgx.Rows) error {
		all, err := pgx.CollectRows(rows, scanItem)
		if err != nil {
			return err
		}
		*into = List{}
		for _, row := range all {
			into.version = max(into.version, row.addedAt.UnixMilli())
			row.AddedAt = timestamp.Format(row.addedAt)
			if row.removedAt == nil {
				into.Items = append(into.Items, row.Item)
			} else {
				into.version = max(into.version, row.removedAt.UnixMilli())
				into.Removed = append(into.Removed, RemovedItem{row.Item, timestamp.Format(*row.removedAt)})
			}
		}
		return nil
	})
}

type itemRow struct {
	Item
	addedAt   time.Time
	removedAt *time.Time
}

func scanItem(from pgx.CollectableRow) (r itemRow, err error) {
	var tenant, property [16]byte
	err = from.Scan(&r.ID, &tenant, &property, &r.Source, &r.Note, &r.addedAt, &r.removedAt)
	r.TenantID, r.PropertyID = id.FromUUID(id.Tenant, tenant), id.FromUUID(id.Property, property)
	return r, err
}

// QueueDelete queues the deletion of a session's wishlist, removed rows included, on a batch, a
// single statement. QueueDelete sends nothing and cannot fail; the statement may run twice. The
// copy in Redis stays.
func QueueDelete(batch *pgx.Batch, sessionID string) {
	batch.Queue(`
		DELETE FROM bff_consumer.wishlist_anonymous
		WHERE guest_session_id = $1`, sessionID)
}

// QueueRemoveAll queues the removal of all items of ended sessions on a batch, a single statement
// without events and without the locks of the sessions. The rows stay for the retention of removed
// rows, 30 days. QueueRemoveAll sends nothing and cannot fail. The statement may run twice; the
// first time of removal stays. Copies in Redis stay.
func QueueRemoveAll(batch *pgx.Batch, sessionIDs []string) {
	batch.Queue(`
		UPDATE bff_consumer.wishlist_anonymous
		SET removed_at = now()
		WHERE guest_session_id = ANY ($1) AND removed_at IS NULL`, sessionIDs)
}
