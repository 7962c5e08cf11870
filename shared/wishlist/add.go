package wishlist

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"melmastoon.ghasi.io/bff-consumer/shared/event"
	"melmastoon.ghasi.io/bff-consumer/shared/id"
	"melmastoon.ghasi.io/bff-consumer/shared/outbox"
	"melmastoon.ghasi.io/bff-consumer/shared/session"
	"melmastoon.ghasi.io/bff-consumer/shared/session/lock"
	"melmastoon.ghasi.io/bff-consumer/shared/timestamp"
)

// ErrFull means that the wishlist has MaxItems properties.
var ErrFull = errors.New("wishlist: full")

// addSQL inserts a row for the property, or revives the removed row. It changes nothing if the
// property is on the list or the list is full.
var addSQL = `
	WITH` + listCTE + `,
	changed AS (
		INSERT INTO bff_consumer.wishlist_anonymous AS w
		       (id, guest_session_id, tenant_id, property_id, source, note, added_at)
		SELECT $8::text, $1::text, $9::uuid, $10::uuid, $11::text, $12::text, ` + mutationTimeSQL + `
		FROM list
		WHERE list.size < $13 AND list.consent IS DISTINCT FROM 'cleared'
		ON CONFLICT (guest_session_id, property_id) DO UPDATE
		SET tenant_id = excluded.tenant_id,
		    source = excluded.source,
		    note = excluded.note,
		    added_at = excluded.added_at,
		    removed_at = NULL
		WHERE w.removed_at IS NOT NULL
		RETURNING id, added_at),` + fmt.Sprintf(eventCTE, `
			'wishlistId', changed.id::text, 'wishlistSize', list.size + 1, 'addedAt', `+fmt.Sprintf(messageTimeSQL, "changed.added_at")) + `
	SELECT coalesce(list.consent, ''), list.size, list.version, changed.id::text, changed.added_at
	FROM list
	LEFT JOIN changed ON true`

// AddRequest is a property for the list. The caller has validated the values.
type AddRequest struct {
	PropertyID, TenantID, Source, Note string

	OptedOut bool // the guest's browser refuses telemetry: the transaction records the refusal
}

// Add puts a property on the list of a session, or returns the existing item (Applied is false).
// Concurrent calls never exceed MaxItems and never add a property twice, so the call may be
// repeated.
//
// events are optional. The last event reports the addition: Add sets its id, size and time, and
// writes it in the transaction of the addition, only if the list changes and the guest has not
// opted out. The events before are written also if the list does not change, unless the guest opted
// out or cleared the session.
//
// An addition takes a single round trip to Postgres; an existing item or a full list takes a second
// one. If a concurrent removal gets in between, Add tries up to three times. Each round trip takes
// at most 1.5 s, including the wait for the exclusive lock of the session, and ends at least 250 ms
// before the request's deadline; with less time left, Add fails at once. A disconnect of the client
// cancels nothing. Add needs no Redis, and takes a mutex of the process for a moment.
//
// It returns ErrFull, session.ErrCleared, id.ErrMalformed, an error for an event without a JSON
// form, an error after three attempts, or the error of Postgres, also for a Source or Note that the
// table rejects. The Change is nil with an error. After an error of Postgres the property may be on
// the list.
func (s *Store) Add(ctx context.Context, sessionID string, w AddRequest, events ...event.Event) (*Change, error) {
	tenant, err := id.UUID(id.Tenant, w.TenantID)
	if err != nil {
		return nil, fmt.Errorf("wishlist: add: %w", err)
	}
	property, err := id.UUID(id.Property, w.PropertyID)
	if err != nil {
		return nil, fmt.Errorf("wishlist: add: %w", err)
	}
	earlier, row, err := eventArgs(events)
	if err != nil {
		return nil, err
	}
	at := s.now().UTC().Truncate(time.Millisecond)
	args := append([]any{sessionID, at}, row...)
	args = append(args, id.New(id.Wishlist, at), tenant, property, w.Source, nullable(w.Note), MaxItems)
	for range 3 { // again only if a concurrent removal runs between insert and read
		c, consent, err := s.insert(ctx, sessionID, w.OptedOut, earlier, args)
		switch {
		case err != nil:
			return nil, fmt.Errorf("wishlist: add: %w", err)
		case consent == consentCleared:
			return nil, session.ErrCleared
		case c.Applied:
			c.Item.PropertyID, c.Item.TenantID, c.Item.Source, c.Item.Note = w.PropertyID, w.TenantID, w.Source, w.Note
			return c, nil
		}
		var all List
		var batch pgx.Batch
		QueueRead(&batch, sessionID, &all)
		if err := s.send(ctx, &batch); err != nil {
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

// errContested means that other requests added and removed the property between the round trips of
// all three attempts.
var errContested = errors.New("added and removed by others at the same time")

// insert runs addSQL under the exclusive lock of the session, in a single round trip.
func (s *Store) insert(
	ctx context.Context, sessionID string, optedOut bool, earlier []event.Event, args []any,
) (c *Change, consent string, err error) {
	c = &Change{}
	var version, at *time.Time
	var itemID *string
	var batch pgx.Batch
	lock.Exclusive(&batch, sessionID)
	if optedOut {
		session.RecordOptOut(&batch, sessionID, s.now())
	}
	if err := outbox.Queue(&batch, earlier...); err != nil {
		return nil, "", err
	}
	batch.Queue(addSQL, args...).QueryRow(func(row pgx.Row) error {
		return row.Scan(&consent, &c.Size, &version, &itemID, &at)
	})
	if err := s.send(ctx, &batch); err != nil {
		return nil, "", err
	}
	if c.Applied = itemID != nil; c.Applied {
		c.Size++
		c.Item.ID, c.Item.AddedAt = *itemID, timestamp.Format(*at)
		c.previousVersion, c.version = millis(version), millis(at)
	}
	return c, consent, nil
}

func nullable(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}
