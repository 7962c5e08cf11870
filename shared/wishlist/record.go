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
	"melmastoon.ghasi.io/bff-consumer/shared/instant"
	"melmastoon.ghasi.io/bff-consumer/shared/outbox"
	"melmastoon.ghasi.io/bff-consumer/shared/session"
	"melmastoon.ghasi.io/bff-consumer/shared/session/turn"
)

// ErrFull says that the wishlist holds Cap properties.
var ErrFull = errors.New("wishlist: full")

// Sender is the pool.
type Sender interface {
	SendBatch(ctx context.Context, batch *pgx.Batch) pgx.BatchResults
}

// How long Postgres may take for one step of a mutation.
const (
	mutateWithin = 1500 * time.Millisecond
	leaving      = 250 * time.Millisecond // of the request's time, left for what follows: Redis, events and the answer
)

// step is how long one step may take so that the request is answered in time.
func step(ctx context.Context) time.Duration {
	if deadline, ok := ctx.Deadline(); ok {
		return min(mutateWithin, time.Until(deadline)-leaving)
	}
	return mutateWithin
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

// timeSQL is the time of a mutation: later than all times of the list, so that they put the mutations in order whatever
// the clocks of instances say. $2 is the time here.
const timeSQL = `greatest($2::timestamptz, list.version + interval '1 ms')`

// toldCTE writes the event of a mutation, completed by what only the statement knows. $3 to $7 are the row of the
// outbox, or nulls.
const toldCTE = `
	told AS (
		INSERT INTO bff_consumer.outbox (id, topic, payload, headers, retention_class)
		SELECT $3::text, $4::text, jsonb_set($5::jsonb, '{payload}', $5::jsonb -> 'payload' || jsonb_build_object(%s)),
		       $6::jsonb, $7::text
		FROM done, list
		WHERE $3::text IS NOT NULL AND list.choice IS NULL)`

// How a message has a timestamptz, and the uuid of a tenant: as the ULID of its 128 bits, five at a time from the two
// zeros in front.
const (
	wireTime = `to_char(%s AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`
	tenantID = `'tnt_' || (
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
		SELECT $8::text, $1::text, $9::uuid, $10::uuid, $11::text, $12::text, ` + timeSQL + `
		FROM list
		WHERE list.size < $13 AND list.choice IS DISTINCT FROM 'gone'
		ON CONFLICT (guest_session_id, property_id) DO UPDATE
		SET tenant_id = excluded.tenant_id,
		    source = excluded.source,
		    note = excluded.note,
		    added_at = excluded.added_at,
		    removed_at = NULL
		WHERE w.removed_at IS NOT NULL
		RETURNING id, added_at),` + fmt.Sprintf(toldCTE, `
			'wishlistId', done.id::text, 'wishlistSize', list.size + 1, 'addedAt', `+fmt.Sprintf(wireTime, "done.added_at")) + `
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
		SET removed_at = ` + timeSQL + `
		FROM list
		WHERE w.guest_session_id = $1 AND w.property_id = $8::uuid AND w.removed_at IS NULL
		  AND list.choice IS DISTINCT FROM 'gone'
		RETURNING w.id, w.tenant_id, w.removed_at),` + fmt.Sprintf(toldCTE, `
			'wishlistId', done.id::text, 'tenantId', `+tenantID+`, 'wishlistSize', list.size - 1,
			'removedAt', `+fmt.Sprintf(wireTime, "done.removed_at")) + `,
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

const cleared = "gone" // what a mutation answers as the choice of a guest who cleared the session

const selectSQL = `
	SELECT id::text, tenant_id, property_id, source, coalesce(note, ''), added_at, removed_at
	FROM bff_consumer.wishlist_anonymous
	WHERE guest_session_id = $1
	ORDER BY added_at`

// Wish is what a guest wants to put on the list; its values have been checked.
type Wish struct {
	PropertyID, TenantID, Source, Note string

	Refuses bool // the guest's browser refuses telemetry, which goes on record with the wish
}

// Change is what became of a mutation.
type Change struct {
	Item Item // added, or there already
	Size int  // of the list now
	Done bool // false: nothing changed

	before, now string // versions
	list        *List  // the whole of it, after a removal
	copied      *redis.Cmd
}

// Add puts a property on the list of a session, or leaves it as it is when it is there. told is none, or ends with
// the event of it; what that says of id, size and time is filled in, and those before it are told whether or not the list
// changes. It fails with ErrFull, session.ErrCleared, or with what
// Postgres said within 1.5 s, or what the request has left. However many add at once, the list never holds more than
// Cap, nor a property twice.
func (r *Room) Add(ctx context.Context, sessionID string, w Wish, told ...event.Event) (*Change, error) {
	tenant, err := id.UUID(id.Tenant, w.TenantID)
	if err != nil {
		return nil, fmt.Errorf("wishlist: add: %w", err)
	}
	property, err := id.UUID(id.Property, w.PropertyID)
	if err != nil {
		return nil, fmt.Errorf("wishlist: add: %w", err)
	}
	before, row, err := columns(told)
	if err != nil {
		return nil, err
	}
	at := r.now().UTC().Truncate(time.Millisecond)
	args := append([]any{sessionID, at}, row...)
	args = append(args, id.New(id.Wishlist, at), tenant, property, w.Source, nullable(w.Note), Cap)
	for range 3 { // once more only when what was there is removed between two looks at it
		c, choice, err := r.add(ctx, sessionID, w.Refuses, before, args)
		switch {
		case err != nil:
			return nil, fmt.Errorf("wishlist: add: %w", err)
		case choice == cleared:
			return nil, session.ErrCleared
		case c.Done:
			c.Item.PropertyID, c.Item.TenantID, c.Item.Source, c.Item.Note = w.PropertyID, w.TenantID, w.Source, w.Note
			return c, nil
		}
		var all List
		var batch pgx.Batch
		Read(&batch, sessionID, &all)
		if err := r.send(ctx, &batch); err != nil {
			return nil, fmt.Errorf("wishlist: add: %w", err)
		}
		for _, item := range all.Items {
			if item.PropertyID == w.PropertyID {
				return &Change{Item: item, Size: len(all.Items)}, nil
			}
		}
		if c.Size >= Cap {
			return nil, ErrFull
		}
	}
	return nil, fmt.Errorf("wishlist: add: %w", errContested)
}

// errContested says that somebody adds and removes one property so fast that a third does not get a word in.
var errContested = errors.New("added and removed by others at the same time")

func (r *Room) add(ctx context.Context, sessionID string, refuses bool, before []event.Event, args []any) (c *Change, choice string, err error) {
	c = &Change{}
	var version, at *time.Time
	var itemID *string
	var batch pgx.Batch
	turn.Lock(&batch, sessionID)
	if refuses {
		session.Refuse(&batch, sessionID, r.now())
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
	if c.Done = itemID != nil; c.Done {
		c.Size++
		c.Item.ID, c.Item.AddedAt = *itemID, instant.Text(*at)
		c.before, c.now = millis(version), millis(at)
	}
	return c, choice, nil
}

// Remove takes a property off the list of a session, or does nothing when it is not on it. told and errors are as for
// Add.
func (r *Room) Remove(ctx context.Context, sessionID, propertyID string, told ...event.Event) (*Change, error) {
	property, err := id.UUID(id.Property, propertyID)
	if err != nil {
		return nil, fmt.Errorf("wishlist: remove: %w", err)
	}
	before, row, err := columns(told)
	if err != nil {
		return nil, err
	}
	args := append([]any{sessionID, r.now().UTC().Truncate(time.Millisecond)}, row...)
	args = append(args, property, maxRemoved)

	c := &Change{list: &List{}}
	var choice string
	var batch pgx.Batch
	turn.Lock(&batch, sessionID)
	if err := outbox.Queue(&batch, before...); err != nil {
		return nil, err
	}
	batch.Queue(removeSQL, args...).QueryRow(func(row pgx.Row) error { return row.Scan(&choice, &c.Done) })
	Read(&batch, sessionID, c.list)
	if err := r.send(ctx, &batch); err != nil {
		return nil, fmt.Errorf("wishlist: remove: %w", err)
	}
	if choice == cleared {
		return nil, session.ErrCleared
	}
	c.Size = len(c.list.Items)
	return c, nil
}

// Read puts the read of a wishlist into a batch.
func Read(batch *pgx.Batch, sessionID string, into *List) {
	batch.Queue(selectSQL, sessionID).Query(func(rows pgx.Rows) error {
		all, err := pgx.CollectRows(rows, scan)
		if err != nil {
			return err
		}
		*into = List{}
		for _, row := range all {
			into.version = max(into.version, row.added.UnixMilli())
			row.AddedAt = instant.Text(row.added)
			if row.removed == nil {
				into.Items = append(into.Items, row.Item)
			} else {
				into.version = max(into.version, row.removed.UnixMilli())
				into.Removed = append(into.Removed, Removed{row.Item, instant.Text(*row.removed)})
			}
		}
		return nil
	})
}

type row struct {
	Item
	added   time.Time
	removed *time.Time
}

func scan(from pgx.CollectableRow) (r row, err error) {
	var tenant, property [16]byte
	err = from.Scan(&r.ID, &tenant, &property, &r.Source, &r.Note, &r.added, &r.removed)
	r.TenantID, r.PropertyID = id.FromUUID(id.Tenant, tenant), id.FromUUID(id.Property, property)
	return r, err
}

// Forget deletes, with what else is in batch, all of a session's wishlist, removed rows included.
func Forget(batch *pgx.Batch, sessionID string) {
	batch.Queue(`
		DELETE FROM bff_consumer.wishlist_anonymous
		WHERE guest_session_id = $1`, sessionID)
}

// Abandon removes, with what else is in batch, what is left on the wishlists of sessions that are over. Rows stay for
// as long as others that were removed.
func Abandon(batch *pgx.Batch, sessionIDs []string) {
	batch.Queue(`
		UPDATE bff_consumer.wishlist_anonymous
		SET removed_at = now()
		WHERE guest_session_id = ANY ($1) AND removed_at IS NULL`, sessionIDs)
}

// send runs a mutation as one transaction: a batch that is sent to the pool is one. The guest hanging up does not end
// it, the request's own deadline does.
func (r *Room) send(ctx context.Context, batch *pgx.Batch) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), step(ctx))
	defer cancel()
	return r.db.SendBatch(ctx, batch).Close()
}

// columns are the arguments of toldCTE, for the last of the events, and those before it.
func columns(events []event.Event) (before []event.Event, args []any, err error) {
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
