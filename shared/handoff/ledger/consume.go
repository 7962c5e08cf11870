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

// Use is one attempt to consume a handoff.
type Use struct {
	By  string    // instance of the tenant's BFF
	Key []byte    // sha256 of its Idempotency-Key; nil: it sent none, and cannot repeat itself
	At  time.Time // now
}

// Consumed is a handoff that was used, now or a moment ago by the same caller.
type Consumed struct {
	handoff.Handoff
	Details
	ConsumedAt time.Time
}

// Verdicts on a use. ErrRefused says that the handoff was not consumed; Find says why.
var (
	ErrRefused = errors.New("ledger: not consumed")
	ErrUnknown = errors.New("ledger: no such handoff")
)

// Consume uses a handoff, once: one statement decides, whoever else tries at the same moment. Who used it may ask again
// with the same key within 60 seconds and is told the same. Anything else is ErrRefused.
func Consume(ctx context.Context, db Querier, handoffID string, use Use) (Consumed, error) {
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
		handoffID, use.By, use.Key, use.At)
	if err != nil {
		return Consumed{}, fmt.Errorf("ledger: consume: %w", err)
	}
	c, err := pgx.CollectExactlyOneRow(rows, scan)
	if errors.Is(err, pgx.ErrNoRows) {
		return Consumed{}, ErrRefused
	}
	if err != nil {
		return Consumed{}, fmt.Errorf("ledger: consume: %w", err)
	}
	return c, nil
}

func scan(row pgx.CollectableRow) (c Consumed, err error) {
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

// Standing is how an entry stands.
type Standing struct {
	GuestSessionID string
	Consumed       bool
	ConsumedAt     time.Time // zero when it was not
	Suspended      bool      // the tenant, now
	ExpiresAt      time.Time
	Fingerprint    string // sha256:<hex> of the guest it was minted for
	IPHash         string // sha256:<hex>
}

// Find reads how an entry stands; ErrUnknown when there is none, or none any more.
func Find(ctx context.Context, db Querier, handoffID string) (Standing, error) {
	rows, err := db.Query(ctx, `
		SELECT h.guest_session_id, h.consumed, h.consumed_at, h.expires_at, h.fingerprint_hash, h.ip_hash,
		       EXISTS (SELECT FROM bff_consumer.tenant_suspended_cache AS s WHERE s.tenant_id = h.tenant_id)
		FROM bff_consumer.handoff_replay_log AS h
		WHERE h.id = $1::text`, handoffID)
	if err != nil {
		return Standing{}, fmt.Errorf("ledger: find: %w", err)
	}
	s, err := pgx.CollectExactlyOneRow(rows, func(row pgx.CollectableRow) (s Standing, err error) {
		var (
			fingerprint, ip []byte
			consumedAt      *time.Time
		)
		err = row.Scan(&s.GuestSessionID, &s.Consumed, &consumedAt, &s.ExpiresAt, &fingerprint, &ip, &s.Suspended)
		s.Fingerprint, s.IPHash = digest.Text(fingerprint), digest.Text(ip)
		if consumedAt != nil {
			s.ConsumedAt = consumedAt.UTC()
		}
		return s, err
	})
	if errors.Is(err, pgx.ErrNoRows) {
		return Standing{}, ErrUnknown
	}
	if err != nil {
		return Standing{}, fmt.Errorf("ledger: find: %w", err)
	}
	return s, nil
}
