// Package ledger owns the table handoff_replay_log: the minted handoffs and their single use.
// Package handoff verifies tokens. The package publishes no events and does not use Redis.
package ledger

import (
	"errors"
	"fmt"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"melmastoon.ghasi.io/bff-consumer/shared/digest"
	"melmastoon.ghasi.io/bff-consumer/shared/handoff"
	"melmastoon.ghasi.io/bff-consumer/shared/id"
)

// Entry is a minted handoff: the content of its token and the details that only the ledger has.
type Entry struct {
	handoff.Handoff
	Details
	Fingerprint string // sha256:<hex> of the guest
	IPHash      string // sha256:<hex>
}

// Details are the parts of a handoff that its token does not contain. Consume returns them.
type Details struct {
	ChildrenAges []int
	Campaign     *Campaign // nil without a campaign
}

// Campaign is the advertising campaign that brought the guest. Each text is an event.CampaignToken
// or empty.
type Campaign struct {
	Source     string    `json:"source,omitzero"`
	Medium     string    `json:"medium,omitzero"`
	Campaign   string    `json:"campaign,omitzero"`
	CapturedAt time.Time `json:"capturedAt"`
}

// Queue adds the insertion of an entry, one statement, to the batch of the minting transaction, and
// sends nothing. It returns an error for an invalid tenant or property id, an invalid hash, or a
// campaign without a JSON form, and leaves the batch unchanged then. Every other invalid value, or
// an id already in the table, is an error of the batch; ages must fit into 16 bits. If the tenant
// is suspended by then, the whole transaction fails with an error for which IsTenantSuspended is
// true.
func Queue(b *pgx.Batch, e Entry) error {
	tenant, err := id.UUID(id.Tenant, e.TenantID)
	if err != nil {
		return fmt.Errorf("ledger: tenant: %w", err)
	}
	property, err := id.UUID(id.Property, e.PropertyID)
	if err != nil {
		return fmt.Errorf("ledger: property: %w", err)
	}
	fingerprint, err := digest.Parse(e.Fingerprint)
	if err != nil {
		return fmt.Errorf("ledger: fingerprint: %w", err)
	}
	ip, err := digest.Parse(e.IPHash)
	if err != nil {
		return fmt.Errorf("ledger: address: %w", err)
	}
	var campaign, ages any // NULL without a campaign or ages
	if e.Campaign != nil {
		if campaign, err = json.Marshal(e.Campaign); err != nil {
			return fmt.Errorf("ledger: campaign: %w", err)
		}
	}
	if e.ChildrenAges != nil {
		small := make([]int16, len(e.ChildrenAges))
		for i, age := range e.ChildrenAges {
			small[i] = int16(age)
		}
		ages = small
	}
	// For a suspended tenant the subquery yields NULL, the row violates NOT NULL, and the
	// transaction fails. So no handoff is minted for a suspended tenant even if the caches of
	// suspensions are outdated, and the check costs no round trip.
	b.Queue(`
		INSERT INTO bff_consumer.handoff_replay_log
		       (id, guest_session_id, tenant_id, property_id, check_in, check_out, adults, children, rooms, currency, locale,
		        source_campaign, hmac_key_id, fingerprint_hash, ip_hash, minted_at, expires_at, children_ages)
		VALUES ($1::text, $2,
		        (SELECT $3::uuid
		         WHERE NOT EXISTS (SELECT FROM bff_consumer.tenant_suspended_cache WHERE tenant_id = $3::uuid)),
		        $4, $5::date, $6::date, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18)`,
		e.ID, e.GuestSessionID, tenant, property, e.Dates.CheckIn.String(), e.Dates.CheckOut.String(),
		e.Adults, e.Children, e.Rooms, e.Currency, e.Locale,
		campaign, e.KeyID, fingerprint, ip, e.MintedAt, e.ExpiresAt, ages)
	return nil
}

// IsTenantSuspended reports whether a transaction with an entry of Queue failed because the tenant
// is suspended. It is false for nil and for every other error. CPU only.
func IsTenantSuspended(err error) bool {
	const notNull = "23502"
	answer, ok := errors.AsType[*pgconn.PgError](err)
	return ok && answer.Code == notNull && answer.TableName == "handoff_replay_log" && answer.ColumnName == "tenant_id"
}
