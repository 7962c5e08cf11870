package wishlist

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"melmastoon.ghasi.io/bff-consumer/shared/event"
	"melmastoon.ghasi.io/bff-consumer/shared/id"
	"melmastoon.ghasi.io/bff-consumer/shared/outbox"
	"melmastoon.ghasi.io/bff-consumer/shared/session"
	"melmastoon.ghasi.io/bff-consumer/shared/session/lock"
)

// maxRemoved is the limit of removed rows of a session. Without a limit, endless additions and
// removals would make the count of the list slow.
const maxRemoved = 100

// removeSQL marks the row as removed, and deletes the oldest removed rows beyond maxRemoved.
var removeSQL = `
	WITH` + listCTE + `,
	changed AS (
		UPDATE bff_consumer.wishlist_anonymous AS w
		SET removed_at = ` + mutationTimeSQL + `
		FROM list
		WHERE w.guest_session_id = $1 AND w.property_id = $8::uuid AND w.removed_at IS NULL
		  AND list.consent IS DISTINCT FROM 'cleared'
		RETURNING w.id, w.tenant_id, w.removed_at),` + fmt.Sprintf(eventCTE, `
			'wishlistId', changed.id::text, 'tenantId', `+tenantIDSQL+`, 'wishlistSize', list.size - 1,
			'removedAt', `+fmt.Sprintf(messageTimeSQL, "changed.removed_at")) + `,
	trimmed AS (
		DELETE FROM bff_consumer.wishlist_anonymous
		WHERE id IN (
			SELECT id
			FROM bff_consumer.wishlist_anonymous
			WHERE guest_session_id = $1 AND removed_at IS NOT NULL
			ORDER BY removed_at DESC
			OFFSET $9))
	SELECT coalesce(list.consent, ''), changed.id IS NOT NULL
	FROM list
	LEFT JOIN changed ON true`

// Remove takes a property off the list of a session; a property not on the list is no error
// (Applied is false). events are as for Add: the last one is written only if the list changes and
// the guest has not opted out. Remove takes a single round trip to Postgres of at most 1.5 s,
// including the wait for the exclusive lock of the session, and ends at least 250 ms before the
// request's deadline; with less time left it fails at once. A disconnect of the client cancels
// nothing. Remove needs no Redis. The row stays, marked as removed; the transaction deletes the
// oldest marked rows beyond 100.
//
// It returns session.ErrCleared, id.ErrMalformed, an error for an event without a JSON form, or the
// error of Postgres, with a nil Change. After an error of Postgres the property may be removed; the
// call may be repeated.
func (s *Store) Remove(ctx context.Context, sessionID, propertyID string, events ...event.Event) (*Change, error) {
	property, err := id.UUID(id.Property, propertyID)
	if err != nil {
		return nil, fmt.Errorf("wishlist: remove: %w", err)
	}
	earlier, row, err := eventArgs(events)
	if err != nil {
		return nil, err
	}
	args := append([]any{sessionID, s.now().UTC().Truncate(time.Millisecond)}, row...)
	args = append(args, property, maxRemoved)

	c := &Change{list: &List{}}
	var consent string
	var batch pgx.Batch
	lock.Exclusive(&batch, sessionID)
	if err := outbox.Queue(&batch, earlier...); err != nil {
		return nil, err
	}
	batch.Queue(removeSQL, args...).QueryRow(func(row pgx.Row) error { return row.Scan(&consent, &c.Applied) })
	QueueRead(&batch, sessionID, c.list)
	if err := s.send(ctx, &batch); err != nil {
		return nil, fmt.Errorf("wishlist: remove: %w", err)
	}
	if consent == consentCleared {
		return nil, session.ErrCleared
	}
	c.Size = len(c.list.Items)
	return c, nil
}
