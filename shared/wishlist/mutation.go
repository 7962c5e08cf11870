package wishlist

import (
	"context"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/redis/go-redis/v9"

	"melmastoon.ghasi.io/bff-consumer/shared/event"
	"melmastoon.ghasi.io/bff-consumer/shared/outbox"
)

// Timeouts of Postgres for a step of a mutation.
const (
	mutationTimeout = 1500 * time.Millisecond
	responseReserve = 250 * time.Millisecond // for Redis, events and the response
)

// stepTimeout returns 1.5 s, or the request's remaining time less responseReserve if that is
// shorter.
func stepTimeout(ctx context.Context) time.Duration {
	if deadline, ok := ctx.Deadline(); ok {
		return min(mutationTimeout, time.Until(deadline)-responseReserve)
	}
	return mutationTimeout
}

// listCTE reads the state of the list, under the lock of the session: its size, its version, and
// whether the guest cleared the session or opted out of telemetry. $1 is the session.
const listCTE = `
	list AS MATERIALIZED (
		SELECT count(*) FILTER (WHERE removed_at IS NULL) AS size,
		       max(greatest(added_at, removed_at)) AS version,
		       (SELECT CASE WHEN cleared_at IS NOT NULL THEN 'cleared' WHEN NOT telemetry THEN 'opted-out' END
		        FROM bff_consumer.session_choice
		        WHERE guest_session_id = $1) AS consent
		FROM bff_consumer.wishlist_anonymous
		WHERE guest_session_id = $1)`

// mutationTimeSQL is the time of a mutation. It is later than all times of the list, so times order
// the mutations despite clock skew between instances. $2 is the clock of this instance.
const mutationTimeSQL = `greatest($2::timestamptz, list.version + interval '1 ms')`

// eventCTE writes the event of a mutation. It adds the values that the statement computes to the
// payload. $3 to $7 are the row of the outbox, or nulls without an event.
const eventCTE = `
	recorded AS (
		INSERT INTO bff_consumer.outbox (id, topic, payload, headers, retention_class)
		SELECT $3::text, $4::text, jsonb_set($5::jsonb, '{payload}', $5::jsonb -> 'payload' || jsonb_build_object(%s)),
		       $6::jsonb, $7::text
		FROM changed, list
		WHERE $3::text IS NOT NULL AND list.consent IS NULL)`

// The formats of messages: a timestamptz in UTC with milliseconds, and the uuid of a tenant as a
// ULID. A ULID encodes 130 bits, two zeros and the 128 of the uuid, five bits a character.
const (
	messageTimeSQL = `to_char(%s AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`
	tenantIDSQL    = `'tnt_' || (
			SELECT string_agg(substr('0123456789ABCDEFGHJKMNPQRSTVWXYZ', 1 + substring(
			       B'00' || ('x' || replace(changed.tenant_id::text, '-', ''))::bit(128) FROM 1 + 5 * i FOR 5)::integer, 1), '' ORDER BY i)
			FROM generate_series(0, 25) AS i)`
)

const consentCleared = "cleared" // the consent of a guest who cleared the session, in listCTE

// Change is the result of a mutation.
type Change struct {
	Item    Item // added by this mutation or before
	Size    int  // of the list after the mutation
	Applied bool // false: nothing changed

	previousVersion, version string // of the list, before and after an addition
	list                     *List  // the whole list, after a removal
	copyCmd                  *redis.Cmd
}

// send runs a batch as a transaction, in a single round trip and within stepTimeout. A disconnect
// of the client does not cancel the transaction.
func (s *Store) send(ctx context.Context, batch *pgx.Batch) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stepTimeout(ctx))
	defer cancel()
	return s.db.SendBatch(ctx, batch).Close()
}

// eventArgs returns the arguments of eventCTE for the last event, and the events before.
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

// millis returns a version of the list.
func millis(t *time.Time) string {
	if t == nil {
		return "0"
	}
	return strconv.FormatInt(t.UnixMilli(), 10)
}
