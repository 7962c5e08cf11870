package session

import (
	"context"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/jackc/pgx/v5"

	"melmastoon.ghasi.io/bff-consumer/shared/digest"
	"melmastoon.ghasi.io/bff-consumer/shared/id"
	"melmastoon.ghasi.io/bff-consumer/shared/idempotency"
	"melmastoon.ghasi.io/bff-consumer/shared/outbox"
	"melmastoon.ghasi.io/bff-consumer/shared/session"
	"melmastoon.ghasi.io/bff-consumer/shared/timestamp"
	"melmastoon.ghasi.io/bff-consumer/shared/web"
	"melmastoon.ghasi.io/bff-consumer/shared/wishlist"
)

// exportData holds the rows of a session in Postgres.
type exportData struct {
	consent         *session.ConsentRecord
	wishlist        wishlist.List
	idempotencyKeys []idempotency.StoredKey
	unsentEvents    []jsontext.Value
	handoffs        []exportedHandoff
	verdicts        []exportedVerdict
}

type exportedHandoff struct {
	HandoffID       string    `json:"handoffId"`
	TenantID        string    `json:"tenantId"`
	PropertyID      string    `json:"propertyId"`
	CheckIn         string    `json:"checkIn"`
	CheckOut        string    `json:"checkOut"`
	Adults          int       `json:"adults"`
	Children        int       `json:"children"`
	Rooms           int       `json:"rooms"`
	ChildrenAges    []int     `json:"childrenAges,omitempty"`
	Currency        string    `json:"currency"`
	Locale          string    `json:"locale"`
	SourceCampaign  *campaign `json:"sourceCampaign,omitzero"`
	FingerprintHash string    `json:"fingerprintHash"`
	IPHash          string    `json:"ipHash"`
	MintedAt        string    `json:"mintedAt"`
	ExpiresAt       string    `json:"expiresAt"`
	ConsumedAt      string    `json:"consumedAt,omitzero"`
	ConsumedBy      string    `json:"consumedBy,omitzero"`
}

type exportedVerdict struct {
	ID              string         `json:"id"`
	Score           float32        `json:"score"`
	Verdict         string         `json:"verdict"`
	ActionTaken     string         `json:"actionTaken"`
	Signals         jsontext.Value `json:"signals"`
	FingerprintHash string         `json:"fingerprintHash"`
	IPHash          string         `json:"ipHash"`
	UserAgentHash   string         `json:"userAgentHash"`
	EvaluatedAt     string         `json:"evaluatedAt"`
}

// readExportData reads all rows of a session in a Postgres round trip of at most 1.5 s. Each
// statement has its own snapshot. Errors come from Postgres.
func (h *Handlers) readExportData(ctx context.Context, sessionID string) (*exportData, error) {
	defer web.FromContext(ctx).Phase("collect")()
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	data := &exportData{}
	var batch pgx.Batch
	session.QueueReadConsent(&batch, sessionID, &data.consent)
	wishlist.QueueRead(&batch, sessionID, &data.wishlist)
	idempotency.QueueList(&batch, sessionID, &data.idempotencyKeys)
	outbox.ReadUnsent(&batch, sessionID, &data.unsentEvents)
	batch.Queue(`
		SELECT id::text, tenant_id, property_id, check_in::text, check_out::text, adults, children, rooms, children_ages,
		       currency::text, locale, source_campaign, fingerprint_hash, ip_hash, minted_at, expires_at,
		       consumed_at, coalesce(consumed_by, '')
		FROM bff_consumer.handoff_replay_log
		WHERE guest_session_id = $1
		ORDER BY minted_at`, sessionID).Query(func(rows pgx.Rows) (err error) {
		data.handoffs, err = pgx.CollectRows(rows, scanHandoff)
		return err
	})
	batch.Queue(`
		SELECT id::text, score, verdict, action_taken, signals, fingerprint_hash, ip_hash, user_agent_hash, evaluated_at
		FROM bff_consumer.bot_score_log
		WHERE guest_session_id = $1
		ORDER BY id`, sessionID).Query(func(rows pgx.Rows) (err error) {
		data.verdicts, err = pgx.CollectRows(rows, scanVerdict)
		return err
	})
	if err := h.db.SendBatch(ctx, &batch).Close(); err != nil {
		return nil, err
	}
	return data, nil
}

func scanHandoff(row pgx.CollectableRow) (h exportedHandoff, err error) {
	var (
		tenant, property [16]byte
		source           *struct {
			Source, Medium, Campaign string
			CapturedAt               time.Time
		}
		fingerprint, ip []byte
		minted, expires time.Time
		consumed        *time.Time
	)
	err = row.Scan(&h.HandoffID, &tenant, &property, &h.CheckIn, &h.CheckOut, &h.Adults, &h.Children, &h.Rooms, &h.ChildrenAges,
		&h.Currency, &h.Locale, &source, &fingerprint, &ip, &minted, &expires, &consumed, &h.ConsumedBy)
	h.TenantID, h.PropertyID = id.FromUUID(id.Tenant, tenant), id.FromUUID(id.Property, property)
	h.FingerprintHash, h.IPHash = digest.Format(fingerprint), digest.Format(ip)
	h.MintedAt, h.ExpiresAt = timestamp.Format(minted), timestamp.Format(expires)
	if source != nil {
		h.SourceCampaign = &campaign{source.Source, source.Medium, source.Campaign, timestamp.Format(source.CapturedAt)}
	}
	if consumed != nil {
		h.ConsumedAt = timestamp.Format(*consumed)
	}
	return h, err
}

func scanVerdict(row pgx.CollectableRow) (v exportedVerdict, err error) {
	var (
		signals, fingerprint, ip, userAgent []byte
		evaluatedAt                         time.Time
	)
	err = row.Scan(&v.ID, &v.Score, &v.Verdict, &v.ActionTaken, &signals, &fingerprint, &ip, &userAgent, &evaluatedAt)
	v.Signals, v.FingerprintHash, v.IPHash, v.UserAgentHash = signals, digest.Format(fingerprint), digest.Format(ip), digest.Format(userAgent)
	v.EvaluatedAt = timestamp.Format(evaluatedAt)
	return v, err
}
