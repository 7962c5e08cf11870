package session

import (
	"net/http"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"melmastoon.ghasi.io/bff-consumer/shared/idempotency"
	"melmastoon.ghasi.io/bff-consumer/shared/postgres"
	"melmastoon.ghasi.io/bff-consumer/shared/timestamp"
	"melmastoon.ghasi.io/bff-consumer/shared/web"
	"melmastoon.ghasi.io/bff-consumer/shared/wishlist"
)

// export is everything that is held about a session, as it is held: hashes stay hashes. Left out are the answers kept
// under idempotency keys, which hold tokens, and what was sent, which is with analytics under the session's id.
type export struct {
	ExportedAt       string                  `json:"exportedAt"`
	Session          *guestSession           `json:"session"`
	ConsentDecidedAt string                  `json:"consentDecidedAt,omitzero"`
	Technical        map[string]string       `json:"technical"` // the other fields of the hash
	Wishlist         []wishlist.Item         `json:"wishlist"`
	Removed          []wishlist.RemovedItem  `json:"removedFromWishlist"`
	RecentlyViewed   []jsontext.Value        `json:"recentlyViewed"`
	SearchHistory    []jsontext.Value        `json:"searchHistory"`
	SearchSessions   []map[string]any        `json:"searchSessions"`
	Handoffs         []exportedHandoff       `json:"handoffs"`
	IdempotencyKeys  []idempotency.StoredKey `json:"idempotencyKeys"`
	UnsentEvents     []jsontext.Value        `json:"unsentEvents"`
	BotVerdicts      []exportedVerdict       `json:"botVerdicts"`
}

// Export answers GET /session/export. It is whole or refused: what a store that is away holds would be missing unseen.
func (d *Handlers) Export(w http.ResponseWriter, r *http.Request) error {
	ctx, v, err := d.begin(d.longTimeoutGuests, w, r)
	if err != nil {
		return err
	}
	if v.Session.Degraded {
		return notSavedProblem(nil)
	}
	held, err := d.readExportData(ctx, v.ID)
	if err != nil {
		return postgres.Problem(err)
	}
	spilled, err := d.outbox.ReadBuffered(ctx, v.ID)
	if err != nil {
		return notSavedProblem(err)
	}
	searches, err := d.searchSessions(ctx, v)
	if err != nil {
		return notSavedProblem(err)
	}
	now, err := d.loadState(ctx, v, writeTimeout)
	switch {
	case err != nil:
		return err
	case len(now.degraded) > 0:
		return notSavedProblem(nil)
	}
	if err := d.longTimeoutGuests.FinishRequired(ctx, w, v.Guest, now.repair); err != nil {
		return notSavedProblem(err)
	}
	body := newGuestSession(v, now)
	x := export{
		ExportedAt: timestamp.Format(d.now()), Session: body, Technical: v.technicalFields(),
		Wishlist: held.wishlist.NewestFirst(), Removed: held.wishlist.Removed, RecentlyViewed: body.RecentlyViewed,
		SearchHistory: body.SearchHistory, SearchSessions: searches, Handoffs: held.handoffs,
		IdempotencyKeys: held.idempotencyKeys, UnsentEvents: slices.Concat(held.unsentEvents, spilled), BotVerdicts: held.verdicts,
	}
	if held.consent != nil {
		x.ConsentDecidedAt = timestamp.Format(held.consent.DecidedAt)
	}
	w.Header().Set("Content-Disposition", `attachment; filename="session.json"`)
	return web.WriteJSON(w, http.StatusOK, x)
}

// visibleFields are the fields of the hash that guestSession shows.
var visibleFields = []string{
	"createdAt", "lastSeenAt", "localePreference", "currencyPreference", "campaignAttribution", "consentTelemetry", "consentMarketing",
}

// technicalFields is the rest of the hash. It is of the session's cookie, so it is the guest's only when that is the session.
func (v *loadedGuest) technicalFields() map[string]string {
	rest := map[string]string{}
	if v.redisHash == nil || v.Request.ID != v.ID {
		return rest
	}
	for field, value := range v.redisHash.Val() {
		if !slices.Contains(visibleFields, field) {
			rest[field] = value
		}
	}
	return rest
}
