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

// Querier is the pool or a transaction.
type Querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

// Attempt is one attempt to consume a handoff.
type Attempt struct {
	Consumer string    // instance of the tenant's BFF
	KeyHash  []byte    // sha256 of its Idempotency-Key; nil: it sent none, and cannot repeat itself
	At       time.Time // now
}

// Consumed is a handoff that was used, now or a moment ago by the same caller.
type Consumed struct {
	handoff.Handoff
	Details
	ConsumedAt time.Time
}

// Verdicts on a use. ErrRefused says that the handoff was not consumed; Find says why.
var (
	ErrNotConsumed = errors.New("ledger: not consumed")
	ErrNotFound    = errors.New("ledger: no such handoff")
)

// Consume uses a handoff, once: one statement decides, whoever else tries at the same moment. Who used it may ask again
// with the same key within 60 seconds and is told the same. Anything else is ErrRefused.
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

// Status is how an entry stands.
type Status struct {
	GuestSessionID string
	Consumed       bool
	ConsumedAt     time.Time // zero when it was not
	Suspended      bool      // the tenant, now
	ExpiresAt      time.Time
	Fingerprint    string // sha256:<hex> of the guest it was minted for
	IPHash         string // sha256:<hex>
}

// FindStatus reads how an entry stands; ErrUnknown when there is none, or none any more.
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
