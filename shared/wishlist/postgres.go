package wishlist

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/redis/go-redis/v9"

	"melmastoon.ghasi.io/bff-consumer/shared/event"
	"melmastoon.ghasi.io/bff-consumer/shared/id"
	"melmastoon.ghasi.io/bff-consumer/shared/outbox"
	"melmastoon.ghasi.io/bff-consumer/shared/session"
	"melmastoon.ghasi.io/bff-consumer/shared/session/lock"
	"melmastoon.ghasi.io/bff-consumer/shared/timestamp"
)

// ErrFull says that the wishlist holds Cap properties.
var ErrFull = errors.New("wishlist: full")

// BatchSender is the pool.
type BatchSender interface {
	SendBatch(ctx context.Context, batch *pgx.Batch) pgx.BatchResults
}

// How long Postgres may take for one step of a mutation.
const (
	mutationTimeout = 1500 * time.Millisecond
	responseReserve = 250 * time.Millisecond // of the request's time, left for what follows: Redis, events and the answer
)

// stepTimeout is how long one step may take so that the request is answered in time.
func stepTimeout(ctx context.Context) time.Duration {
	if deadline, ok := ctx.Deadline(); ok {
		return min(mutationTimeout, time.Until(deadline)-responseReserve)
	}
	return mutationTimeout
}

// listCTE is what every mutation decides by, read under the session's lock: how long the list is, its version, and
// whether the guest cleared the session or refused to be spoken of. $1 is the session.
const listCTE = `
	list AS MATERIALIZED (
		SELECT count(*) FILTER (WHERE removed_at IS NULL) AS size,
		       max(greatest(added_at, removed_at)) AS version,
		       (SELECT CASE WHEN cleared_at IS NOT NULL THEN 'gone' WHEN NOT telemetry THEN 'silent' END
		        FROM bff_consumer.session_choice
		        WHERE guest_session_id = $1) AS choice
		FROM bff_consumer.wishlist_anonymous
		WHERE guest_session_id = $1)`

// mutationTimeSQL is the time of a mutation: later than all times of the list, so that they put the mutations in order whatever
// the clocks of instances say. $2 is the time here.
const mutationTimeSQL = `greatest($2::timestamptz, list.version + interval '1 ms')`

// eventCTE writes the event of a mutation, completed by what only the statement knows. $3 to $7 are the row of the
// outbox, or nulls.
const eventCTE = `
	told AS (
		INSERT INTO bff_consumer.outbox (id, topic, payload, headers, retention_class)
		SELECT $3::text, $4::text, jsonb_set($5::jsonb, '{payload}', $5::jsonb -> 'payload' || jsonb_build_object(%s)),
		       $6::jsonb, $7::text
		FROM done, list
		WHERE $3::text IS NOT NULL AND list.choice IS NULL)`

// How a message has a timestamptz, and the uuid of a tenant: as the ULID of its 128 bits, five at a time from the two
// zeros in front.
const (
	messageTimeSQL = `to_char(%s AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`
	tenantIDSQL    = `'tnt_' || (
			SELECT string_agg(substr('0123456789ABCDEFGHJKMNPQRSTVWXYZ', 1 + substring(
			       B'00' || ('x' || replace(done.tenant_id::text, '-', ''))::bit(128) FROM 1 + 5 * i FOR 5)::integer, 1), '' ORDER BY i)
			FROM generate_series(0, 25) AS i)`
)

// addSQL finds a place for the property: a new row, or a removed one that is revived. A property that is on the list,
// and a list that is full, stay as they are.
var addSQL = `
	WITH` + listCTE + `,
	done AS (
		INSERT INTO bff_consumer.wishlist_anonymous AS w
		       (id, guest_session_id, tenant_id, property_id, source, note, added_at)
		SELECT $8::text, $1::text, $9::uuid, $10::uuid, $11::text, $12::text, ` + mutationTimeSQL + `
		FROM list
		WHERE list.size < $13 AND list.choice IS DISTINCT FROM 'gone'
		ON CONFLICT (guest_session_id, property_id) DO UPDATE
		SET tenant_id = excluded.tenant_id,
		    source = excluded.source,
		    note = excluded.note,
		    added_at = excluded.added_at,
		    removed_at = NULL
		WHERE w.removed_at IS NOT NULL
		RETURNING id, added_at),` + fmt.Sprintf(eventCTE, `
			'wishlistId', done.id::text, 'wishlistSize', list.size + 1, 'addedAt', `+fmt.Sprintf(messageTimeSQL, "done.added_at")) + `
	SELECT coalesce(list.choice, ''), list.size, list.version, done.id::text, done.added_at
	FROM list
	LEFT JOIN done ON true`

// maxRemoved removed rows of one session are kept until they are pruned, so that adding and removing without end
// does not make a list that is slow to count.
const maxRemoved = 100

// removeSQL marks the row.
var removeSQL = `
	WITH` + listCTE + `,
	done AS (
		UPDATE bff_consumer.wishlist_anonymous AS w
		SET removed_at = ` + mutationTimeSQL + `
		FROM list
		WHERE w.guest_session_id = $1 AND w.property_id = $8::uuid AND w.removed_at IS NULL
		  AND list.choice IS DISTINCT FROM 'gone'
		RETURNING w.id, w.tenant_id, w.removed_at),` + fmt.Sprintf(eventCTE, `
			'wishlistId', done.id::text, 'tenantId', `+tenantIDSQL+`, 'wishlistSize', list.size - 1,
			'removedAt', `+fmt.Sprintf(messageTimeSQL, "done.removed_at")) + `,
	trimmed AS (
		DELETE FROM bff_consumer.wishlist_anonymous
		WHERE id IN (
			SELECT id
			FROM bff_consumer.wishlist_anonymous
			WHERE guest_session_id = $1 AND removed_at IS NOT NULL
			ORDER BY removed_at DESC
			OFFSET $9))
	SELECT coalesce(list.choice, ''), done.id IS NOT NULL
	FROM list
	LEFT JOIN done ON true`

const clearedConsent = "gone" // what a mutation answers as the choice of a guest who cleared the session

const selectSQL = `
	SELECT id::text, tenant_id, property_id, source, coalesce(note, ''), added_at, removed_at
	FROM bff_consumer.wishlist_anonymous
	WHERE guest_session_id = $1
	ORDER BY added_at`

// AddRequest is what a guest wants to put on the list; its values have been checked.
type AddRequest struct {
	PropertyID, TenantID, Source, Note string

	OptedOut bool // the guest's browser refuses telemetry, which goes on record with the wish
}

// Change is what became of a mutation.
type Change struct {
	Item    Item // added, or there already
	Size    int  // of the list now
	Applied bool // false: nothing changed

	previousVersion, version string // versions
	list                     *List  // the whole of it, after a removal
	copyCmd                  *redis.Cmd
}

// Add puts a property on the list of a session, or leaves it as it is when it is there. told is none, or ends with
// the event of it; what that says of id, size and time is filled in, and those before it are told whether or not the list
// changes. It fails with ErrFull, session.ErrCleared, or with what
// Postgres said within 1.5 s, or what the request has left. However many add at once, the list never holds more than
// Cap, nor a property twice.
func (r *Store) Add(ctx context.Context, sessionID string, w AddRequest, told ...event.Event) (*Change, error) {
	tenant, err := id.UUID(id.Tenant, w.TenantID)
	if err != nil {
		return nil, fmt.Errorf("wishlist: add: %w", err)
	}
	property, err := id.UUID(id.Property, w.PropertyID)
	if err != nil {
		return nil, fmt.Errorf("wishlist: add: %w", err)
	}
	before, row, err := eventArgs(told)
	if err != nil {
		return nil, err
	}
	at := r.now().UTC().Truncate(time.Millisecond)
	args := append([]any{sessionID, at}, row...)
	args = append(args, id.New(id.Wishlist, at), tenant, property, w.Source, nullable(w.Note), MaxItems)
	for range 3 { // once more only when what was there is removed between two looks at it
		c, choice, err := r.insert(ctx, sessionID, w.OptedOut, before, args)
		switch {
		case err != nil:
			return nil, fmt.Errorf("wishlist: add: %w", err)
		case choice == clearedConsent:
			return nil, session.ErrCleared
		case c.Applied:
			c.Item.PropertyID, c.Item.TenantID, c.Item.Source, c.Item.Note = w.PropertyID, w.TenantID, w.Source, w.Note
			return c, nil
		}
		var all List
		var batch pgx.Batch
		QueueRead(&batch, sessionID, &all)
		if err := r.send(ctx, &batch); err != nil {
			return nil, fmt.Errorf("wishlist: add: %w", err)
		}
		for _, item := range all.Items {
			if item.PropertyID == w.PropertyID {
				return &Change{Item: item, Size: len(all.Items)}, nil
			}
		}
		if c.Size >= MaxItems {
			return nil, ErrFull
		}
	}
	return nil, fmt.Errorf("wishlist: add: %w", errContested)
}

// errContested says that somebody adds and removes one property so fast that a third does not get a word in.
var errContested = errors.New("added and removed by others at the same time")

func (r *Store) insert(ctx context.Context, sessionID string, refuses bool, before []event.Event, args []any) (c *Change, choice string, err error) {
	c = &Change{}
	var version, at *time.Time
	var itemID *string
	var batch pgx.Batch
	lock.Exclusive(&batch, sessionID)
	if refuses {
		session.RecordOptOut(&batch, sessionID, r.now())
	}
	if err := outbox.Queue(&batch, before...); err != nil {
		return nil, "", err
	}
	batch.Queue(addSQL, args...).QueryRow(func(row pgx.Row) error {
		return row.Scan(&choice, &c.Size, &version, &itemID, &at)
	})
	if err := r.send(ctx, &batch); err != nil {
		return nil, "", err
	}
	if c.Applied = itemID != nil; c.Applied {
		c.Size++
		c.Item.ID, c.Item.AddedAt = *itemID, timestamp.Format(*at)
		c.previousVersion, c.version = millis(version), millis(at)
	}
	return c, choice, nil
}

// Remove takes a property off the list of a session, or does nothing when it is not on it. told and errors are as for
// Add.
func (r *Store) Remove(ctx context.Context, sessionID, propertyID string, told ...event.Event) (*Change, error) {
	property, err := id.UUID(id.Property, propertyID)
	if err != nil {
		return nil, fmt.Errorf("wishlist: remove: %w", err)
	}
	before, row, err := eventArgs(told)
	if err != nil {
		return nil, err
	}
	args := append([]any{sessionID, r.now().UTC().Truncate(time.Millisecond)}, row...)
	args = append(args, property, maxRemoved)

	c := &Change{list: &List{}}
	var choice string
	var batch pgx.Batch
	lock.Exclusive(&batch, sessionID)
	if err := outbox.Queue(&batch, before...); err != nil {
		return nil, err
	}
	batch.Queue(removeSQL, args...).QueryRow(func(row pgx.Row) error { return row.Scan(&choice, &c.Applied) })
	QueueRead(&batch, sessionID, c.list)
	if err := r.send(ctx, &batch); err != nil {
		return nil, fmt.Errorf("wishlist: remove: %w", err)
	}
	if choice == clearedConsent {
		return nil, session.ErrCleared
	}
	c.Size = len(c.list.Items)
	return c, nil
}

// QueueRead puts the read of a wishlist into a batch.
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

// QueueDelete deletes, with what else is in batch, all of a session's wishlist, removed rows included.
func QueueDelete(batch *pgx.Batch, sessionID string) {
	batch.Queue(`
		DELETE FROM bff_consumer.wishlist_anonymous
		WHERE guest_session_id = $1`, sessionID)
}

// QueueRemoveAll removes, with what else is in batch, what is left on the wishlists of sessions that are over. Rows stay for
// as long as others that were removed.
func QueueRemoveAll(batch *pgx.Batch, sessionIDs []string) {
	batch.Queue(`
		UPDATE bff_consumer.wishlist_anonymous
		SET removed_at = now()
		WHERE guest_session_id = ANY ($1) AND removed_at IS NULL`, sessionIDs)
}

// send runs a mutation as one transaction: a batch that is sent to the pool is one. The guest hanging up does not end
// it, the request's own deadline does.
func (r *Store) send(ctx context.Context, batch *pgx.Batch) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stepTimeout(ctx))
	defer cancel()
	return r.db.SendBatch(ctx, batch).Close()
}

// eventArgs are the arguments of toldCTE, for the last of the events, and those before it.
func eventArgs(events []event.Event) (before []event.Event, args []any, err error) {
	last := len(events) - 1
	if last < 0 {
		return nil, []any{nil, nil, nil, nil, nil}, nil
	}
	row, err := outbox.Encode(events[last])
	if err != nil {
		return nil, nil, err
	}
	return events[:last], []any{row.ID, row.Topic, string(row.Payload), string(row.Headers), row.RetentionClass}, nil
}

func nullable(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

func millis(t *time.Time) string {
	if t == nil {
		return "0"
	}
	return strconv.FormatInt(t.UnixMilli(), 10)
}
