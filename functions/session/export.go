package session

import (
	"net/http"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"melmastoon.ghasi.io/bff-consumer/shared/idempotency"
	"melmastoon.ghasi.io/bff-consumer/shared/instant"
	"melmastoon.ghasi.io/bff-consumer/shared/postgres"
	"melmastoon.ghasi.io/bff-consumer/shared/web"
	"melmastoon.ghasi.io/bff-consumer/shared/wishlist"
)

// export is everything that is held about a session, as it is held: hashes stay hashes. Left out are the answers kept
// under idempotency keys, which hold tokens, and what was sent, which is with analytics under the session's id.
type export struct {
	ExportedAt       string             `json:"exportedAt"`
	Session          *guestSession      `json:"session"`
	ConsentDecidedAt string             `json:"consentDecidedAt,omitzero"`
	Technical        map[string]string  `json:"technical"` // the other fields of the hash
	Wishlist         []wishlist.Item    `json:"wishlist"`
	Removed          []wishlist.Removed `json:"removedFromWishlist"`
	RecentlyViewed   []jsontext.Value   `json:"recentlyViewed"`
	SearchHistory    []jsontext.Value   `json:"searchHistory"`
	SearchSessions   []map[string]any   `json:"searchSessions"`
	Handoffs         []heldHandoff      `json:"handoffs"`
	IdempotencyKeys  []idempotency.Held `json:"idempotencyKeys"`
	UnsentEvents     []jsontext.Value   `json:"unsentEvents"`
	BotVerdicts      []heldVerdict      `json:"botVerdicts"`
}

// Export answers GET /session/export. It is whole or refused: what a store that is away holds would be missing unseen.
func (d *Desk) Export(w http.ResponseWriter, r *http.Request) error {
	ctx, v, err := d.admit(d.needed, w, r)
	if err != nil {
		return err
	}
	if v.Session.Degraded {
		return unsaved(nil)
	}
	held, err := d.held(ctx, v.ID)
	if err != nil {
		return postgres.Problem(err)
	}
	spilled, err := d.outbox.Spilled(ctx, v.ID)
	if err != nil {
		return unsaved(err)
	}
	searches, err := d.searchSessions(ctx, v)
	if err != nil {
		return unsaved(err)
	}
	now, err := d.look(ctx, v, writeWithin)
	switch {
	case err != nil:
		return err
	case len(now.missing) > 0:
		return unsaved(nil)
	}
	if err := d.needed.LeaveSaved(ctx, w, v.Guest, now.repair); err != nil {
		return unsaved(err)
	}
	body := show(v, now)
	x := export{
		ExportedAt: instant.Text(d.now()), Session: body, Technical: v.technical(),
		Wishlist: held.list.Newest(), Removed: held.list.Removed, RecentlyViewed: body.RecentlyViewed,
		SearchHistory: body.SearchHistory, SearchSessions: searches, Handoffs: held.handoffs,
		IdempotencyKeys: held.keys, UnsentEvents: slices.Concat(held.messages, spilled), BotVerdicts: held.verdicts,
	}
	if held.choice != nil {
		x.ConsentDecidedAt = instant.Text(held.choice.DecidedAt)
	}
	w.Header().Set("Content-Disposition", `attachment; filename="session.json"`)
	return web.WriteJSON(w, http.StatusOK, x)
}

// shown are the fields of the hash that guestSession shows.
var shown = []string{
	"createdAt", "lastSeenAt", "localePreference", "currencyPreference", "campaignAttribution", "consentTelemetry", "consentMarketing",
}

// technical is the rest of the hash. It is of the session's cookie, so it is the guest's only when that is the session.
func (v *visit) technical() map[string]string {
	rest := map[string]string{}
	if v.hash == nil || v.Visit.ID != v.ID {
		return rest
	}
	for field, value := range v.hash.Val() {
		if !slices.Contains(shown, field) {
			rest[field] = value
		}
	}
	return rest
}
