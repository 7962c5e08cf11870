package consume

import (
	"context"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"melmastoon.ghasi.io/bff-consumer/shared/handoff"
	"melmastoon.ghasi.io/bff-consumer/shared/handoff/ledger"
	"melmastoon.ghasi.io/bff-consumer/shared/id"
	"melmastoon.ghasi.io/bff-consumer/shared/stay"
)

const (
	activeKey  = "hmac-2026-11:bm92ZW1iZXIncyBrZXksIGluIHRlc3RzIG9ubHkuLi4="
	graceKey   = "hmac-2026-05:bWF5J3Mga2V5LCBpbiB0ZXN0cyBvbmx5Li4uLi4uLi4="
	removedKey = "hmac-2026-04:YXByaWwncyBrZXksIGluIHRlc3RzIG9ubHkuLi4uLi4="
)

var (
	fingerprintHash = "sha256:" + strings.Repeat("ab", 32)
	ipHash          = "sha256:" + strings.Repeat("cd", 32)
)

func parseKeys(t testing.TB, s string) handoff.Keys {
	t.Helper()
	k, err := handoff.ParseKeys(s)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// mintedHandoff is a minted handoff with its token.
type mintedHandoff struct{ id, token, sessionID, tenantID string }

// mint signs a token and writes the ledger's row, as POST /handoff does. keys is nil for the active
// key.
func (h *harness) mint(keys ...string) mintedHandoff {
	h.T.Helper()
	if keys == nil {
		keys = []string{activeKey}
	}
	now := h.Now()
	e := ledger.Entry{
		Handoff: handoff.Handoff{
			ID: id.New(id.Handoff, now), GuestSessionID: id.New(id.Session, now), TenantID: id.New(id.Tenant, now), PropertyID: id.New(id.Property, now),
			Dates:  stay.Dates{CheckIn: stay.DateOf(now.AddDate(0, 0, 10)), CheckOut: stay.DateOf(now.AddDate(0, 0, 13))},
			Adults: 2, Children: 1, Rooms: 1, Currency: "AFN", Locale: "ps-AF", MintedAt: now,
		},
		Details:     ledger.Details{ChildrenAges: []int{7}, Campaign: &ledger.Campaign{Source: "google", CapturedAt: now}},
		Fingerprint: fingerprintHash, IPHash: ipHash,
	}
	token, err := parseKeys(h.T, keys[0]).Sign(&e.Handoff)
	if err != nil {
		h.T.Fatal(err)
	}
	var b pgx.Batch
	if err := ledger.Queue(&b, e); err != nil {
		h.T.Fatal(err)
	}
	if err := h.DB.SendBatch(context.Background(), &b).Close(); err != nil {
		h.T.Fatal(err)
	}
	return mintedHandoff{e.ID, token, e.GuestSessionID, e.TenantID}
}
