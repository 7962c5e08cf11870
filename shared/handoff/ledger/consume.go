package ledger

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/jackc/pgx/v5"

	"melmastoon.ghasi.io/bff-consumer/shared/digest"
	"melmastoon.ghasi.io/bff-consumer/shared/handoff"
	"melmastoon.ghasi.io/bff-consumer/shared/id"
	"melmastoon.ghasi.io/bff-consumer/shared/stay"
)

// Querier is a pool or a transaction.
type Querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

// Attempt is one attempt to consume a handoff.
type Attempt struct {
	Consumer string // instance of the tenant's BFF
	// SHA-256 of the Idempotency-Key; nil without a key, then the attempt cannot be repeated
	KeyHash []byte
	At      time.Time // now
}

// Consumed is a consumed handoff.
type Consumed struct {
	handoff.Handoff
	Details
	ConsumedAt time.Time // of the first attempt
}

// Errors of Consume and FindStatus.
var (
	ErrNotConsumed = errors.New("ledger: not consumed") // FindStatus tells why
	ErrNotFound    = errors.New("ledger: no such handoff")
)

// Consume consumes a handoff at most once, also under concurrent attempts. It is one statement and
// one round trip, bounded by ctx alone; a concurrent attempt waits for the row of the first. The
// same consumer may repeat the attempt with the same key hash within 60 seconds of the first, by
// the clocks in At, and gets the same result, also if the tenant was suspended since. Without a key
// hash no attempt can be repeated.
//
// Consume returns ErrNotConsumed if the handoff does not exist, has expired or was consumed by
// another attempt, or if the tenant is suspended. Without Postgres, or after the end of ctx, it
// returns the error of the driver; the handoff may be consumed then, and a consumer with a key
// repeats the attempt. Consumed is zero with an error. In a transaction, nothing is consumed before
// the commit.
func Consume(ctx context.Context, db Querier, handoffID string, use Attempt) (Consumed, error) {
	rows, err := db.Query(ctx, `
		UPDATE bff_consumer.handoff_replay_log AS h
		SET consumed = true,
		    consumed_at = coalesce(h.consumed_at, $4),
		    consumed_by = coalesce(h.consumed_by, $2),
		    consume_key = coalesce(h.consume_key, $3)
		WHERE h.id = $1::text
		  AND (NOT h.consumed
		       AND h.expires_at > $4
		       AND NOT EXISTS (SELECT FROM bff_consumer.tenant_suspended_cache AS s WHERE s.tenant_id = h.tenant_id)
		       OR h.consumed
		       AND h.consumed_by = $2
		       AND h.consume_key = $3
		       AND h.consumed_at > $4::timestamptz - interval '60 seconds')
		RETURNING id, guest_session_id, tenant_id, property_id, check_in, check_out, adults, children, rooms,
		          currency, locale, minted_at, expires_at, hmac_key_id, children_ages, source_campaign, consumed_at`,
		handoffID, use.Consumer, use.KeyHash, use.At)
	if err != nil {
		return Consumed{}, fmt.Errorf("ledger: consume: %w", err)
	}
	c, err := pgx.CollectExactlyOneRow(rows, scanConsumed)
	if errors.Is(err, pgx.ErrNoRows) {
		return Consumed{}, ErrNotConsumed
	}
	if err != nil {
		return Consumed{}, fmt.Errorf("ledger: consume: %w", err)
	}
	return c, nil
}

// scanConsumed reads the columns that Consume returns.
func scanConsumed(row pgx.CollectableRow) (c Consumed, err error) {
	var (
		tenant, property [16]byte
		in, out          time.Time
		campaign         []byte
	)
	err = row.Scan(&c.ID, &c.GuestSessionID, &tenant, &property, &in, &out, &c.Adults, &c.Children, &c.Rooms,
		&c.Currency, &c.Locale, &c.MintedAt, &c.ExpiresAt, &c.KeyID, &c.ChildrenAges, &campaign, &c.ConsumedAt)
	if err != nil {
		return c, err
	}
	c.TenantID, c.PropertyID = id.FromUUID(id.Tenant, tenant), id.FromUUID(id.Property, property)
	c.Dates = stay.Dates{CheckIn: stay.DateOf(in), CheckOut: stay.DateOf(out)}
	c.MintedAt, c.ExpiresAt, c.ConsumedAt = c.MintedAt.UTC(), c.ExpiresAt.UTC(), c.ConsumedAt.UTC()
	if campaign != nil {
		err = json.Unmarshal(campaign, &c.Campaign)
	}
	return c, err
}

// Status is the state of an entry.
type Status struct {
	GuestSessionID string
	Consumed       bool
	ConsumedAt     time.Time // zero if not consumed
	Suspended      bool      // whether the tenant is suspended now
	ExpiresAt      time.Time
	Fingerprint    string // sha256:<hex> of the guest at minting
	IPHash         string // sha256:<hex> of the guest's address group at minting
}

// FindStatus reads the state of an entry in one query, bounded by ctx alone, without a lock. It
// returns ErrNotFound if the entry never existed or was deleted, and the error of the driver
// without Postgres or after the end of ctx; Status is zero then.
func FindStatus(ctx context.Context, db Querier, handoffID string) (Status, error) {
	rows, err := db.Query(ctx, `
		SELECT h.guest_session_id, h.consumed, h.consumed_at, h.expires_at, h.fingerprint_hash, h.ip_hash,
		       EXISTS (SELECT FROM bff_consumer.tenant_suspended_cache AS s WHERE s.tenant_id = h.tenant_id)
		FROM bff_consumer.handoff_replay_log AS h
		WHERE h.id = $1::text`, handoffID)
	if err != nil {
		return Status{}, fmt.Errorf("ledger: find: %w", err)
	}
	s, err := pgx.CollectExactlyOneRow(rows, func(row pgx.CollectableRow) (s Status, err error) {
		var (
			fingerprint, ip []byte
			consumedAt      *time.Time
		)
		err = row.Scan(&s.GuestSessionID, &s.Consumed, &consumedAt, &s.ExpiresAt, &fingerprint, &ip, &s.Suspended)
		s.Fingerprint, s.IPHash = digest.Format(fingerprint), digest.Format(ip)
		if consumedAt != nil {
			s.ConsumedAt = consumedAt.UTC()
		}
		return s, err
	})
	if errors.Is(err, pgx.ErrNoRows) {
		return Status{}, ErrNotFound
	}
	if err != nil {
		return Status{}, fmt.Errorf("ledger: find: %w", err)
	}
	return s, nil
}
