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

// export holds all stored data of a session in the stored form: hashes stay hashes. Left out are
// answers stored under idempotency keys, because of their tokens, and published events, because
// analytics stores published events under the session's id.
type export struct {
	ExportedAt       string        `json:"exportedAt"`
	Session          *guestSession `json:"session"`
	ConsentDecidedAt string        `json:"consentDecidedAt,omitzero"`
	// fields of the hash that Session does not show
	Technical       map[string]string       `json:"technical"`
	Wishlist        []wishlist.Item         `json:"wishlist"`
	Removed         []wishlist.RemovedItem  `json:"removedFromWishlist"`
	RecentlyViewed  []jsontext.Value        `json:"recentlyViewed"`
	SearchHistory   []jsontext.Value        `json:"searchHistory"`
	SearchSessions  []map[string]any        `json:"searchSessions"`
	Handoffs        []exportedHandoff       `json:"handoffs"`
	IdempotencyKeys []idempotency.StoredKey `json:"idempotencyKeys"`
	UnsentEvents    []jsontext.Value        `json:"unsentEvents"`
	BotVerdicts     []exportedVerdict       `json:"botVerdicts"`
}

// Export answers GET /session/export with all stored data of the session, built in memory. The
// answer is complete or an error, usually 503: the guest could not notice the missing data of an
// unavailable store. Stores are read one after the other, so the answer is no snapshot: an event
// moved from Redis to Postgres meanwhile may be missing.
//
// The cost is two Redis round trips of at most 800 ms each, another of at most 1 s each way for the
// search sessions, the reads of the Redis list of unsent events in chunks of 1,000 rows, and two
// Postgres round trips of at most 1.5 s each. A new session or changed preference adds a write of
// events (300 ms). The request's budget of 2.5 s bounds the sum of the reads: after that the answer
// is 503.
//
// Without Redis or Postgres, and for an undecodable buffered row, the answer is 503; any other
// error of Postgres is 500. A session cleared meanwhile is a retriable 503. Export changes no data
// except the time of the last visit and a wrong copy of the wishlist.
func (h *Handlers) Export(w http.ResponseWriter, r *http.Request) error {
	ctx, g, err := h.begin(h.longTimeoutGuests, w, r)
	if err != nil {
		return err
	}
	if g.Session.Degraded {
		return notSavedProblem(nil)
	}
	data, err := h.readExportData(ctx, g.ID)
	if err != nil {
		return postgres.Problem(err)
	}
	buffered, err := h.outbox.ReadBuffered(ctx, g.ID)
	if err != nil {
		return notSavedProblem(err)
	}
	searches, err := h.searchSessions(ctx, g)
	if err != nil {
		return notSavedProblem(err)
	}
	state, err := h.loadState(ctx, g, writeTimeout)
	switch {
	case err != nil:
		return err
	case len(state.degraded) > 0:
		return notSavedProblem(nil)
	}
	if err := h.longTimeoutGuests.FinishRequired(ctx, w, g.Guest, state.repair); err != nil {
		return notSavedProblem(err)
	}
	body := newGuestSession(g, state)
	answer := export{
		ExportedAt: timestamp.Format(h.now()), Session: body, Technical: g.technicalFields(),
		Wishlist: data.wishlist.NewestFirst(), Removed: data.wishlist.Removed, RecentlyViewed: body.RecentlyViewed,
		SearchHistory: body.SearchHistory, SearchSessions: searches, Handoffs: data.handoffs,
		IdempotencyKeys: data.idempotencyKeys, UnsentEvents: slices.Concat(data.unsentEvents, buffered), BotVerdicts: data.verdicts,
	}
	if data.consent != nil {
		answer.ConsentDecidedAt = timestamp.Format(data.consent.DecidedAt)
	}
	w.Header().Set("Content-Disposition", `attachment; filename="session.json"`)
	return web.WriteJSON(w, http.StatusOK, answer)
}

// visibleFields are the fields of the hash that guestSession shows.
var visibleFields = []string{
	"createdAt", "lastSeenAt", "localePreference", "currencyPreference", "campaignAttribution", "consentTelemetry", "consentMarketing",
}

// technicalFields returns the fields of the hash that guestSession does not show. The hash belongs
// to the session of the cookie, so the result is empty when the guest has another session.
func (g *loadedGuest) technicalFields() map[string]string {
	rest := map[string]string{}
	if g.redisHash == nil || g.Request.ID != g.ID {
		return rest
	}
	for field, value := range g.redisHash.Val() {
		if !slices.Contains(visibleFields, field) {
			rest[field] = value
		}
	}
	return rest
}
