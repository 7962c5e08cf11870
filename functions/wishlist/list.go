package wishlist

import (
	"context"
	"net/http"

	"github.com/redis/go-redis/v9"

	"melmastoon.ghasi.io/bff-consumer/shared/compose"
	"melmastoon.ghasi.io/bff-consumer/shared/guest"
	"melmastoon.ghasi.io/bff-consumer/shared/postgres"
	"melmastoon.ghasi.io/bff-consumer/shared/session"
	"melmastoon.ghasi.io/bff-consumer/shared/upstream"
	"melmastoon.ghasi.io/bff-consumer/shared/view"
	"melmastoon.ghasi.io/bff-consumer/shared/web"
	"melmastoon.ghasi.io/bff-consumer/shared/wishlist"
)

// List handles GET /wishlist. Safe for concurrent use.
type List struct {
	guests   *guest.Controller
	sessions *session.Store
	store    *wishlist.Store
	parts    *compose.Fetcher
	region   string // cloud region of this service
}

type listResponse struct {
	Size     int             `json:"size"`
	Items    []listItem      `json:"items"`
	Degraded []view.Degraded `json:"degraded"`
}

// listItem is an item with the card of its hotel. Listing is null for a hotel without a card.
type listItem struct {
	wishlist.Item
	Listing *view.ListingCard `json:"listing"`
}

// Serve answers GET /wishlist with the list, newest first, and the card of each hotel. The answer
// is personal (private, no-store). web.Budget bounds the request to 2.5 s.
//
// A warm hit costs a Redis round trip of at most 100 ms for session and copy, a Postgres read of at
// most 300 ms, and two Redis round trips for the cached cards and brands. A missing card is a call
// of search-aggregation (1.2 s for all cards), a missing brand a call of theme-config (750 ms for
// all brands), each with more Redis round trips. A session that is new, changed or last saved over
// a minute ago, or a wrong copy, costs another Redis round trip of at most 100 ms. A new session
// adds a Postgres write of at most 300 ms.
//
// Failures:
//   - Postgres: the copy in Redis, and "wishlist" in "degraded". Without a copy Postgres has 1 s,
//     and then the answer is 503; any other error of Postgres is 500.
//   - Redis: the list from Postgres; cards and brands from the upstreams. Without both stores 503.
//   - search-aggregation: items without cards, and "search" in "degraded".
//   - theme-config: neutral brands, and "theme" in "degraded".
//
// A hotel of a suspended tenant has no card. A session cleared meanwhile is a retriable 503, after
// up to 1.5 s for the rest of the erasure.
func (h *List) Serve(w http.ResponseWriter, r *http.Request) error {
	var lists *session.Lists
	ctx, guest, err := h.guests.Begin(w, r, func(ctx context.Context, pipe redis.Pipeliner, request *session.Request) {
		if request.ID != "" {
			lists = h.sessions.EnqueueLists(ctx, pipe, request.ID)
		}
	})
	if err != nil {
		return err
	}
	var answer listResponse
	copied, found := lists.Wishlist(guest.Session)
	done := web.FromContext(ctx).Phase("record")
	get := h.store.Get
	if !found {
		get = h.store.GetWithoutCopy
	}
	list, err := get(ctx, guest.ID)
	done()
	fromPostgres := err == nil
	if err != nil {
		if !found || !postgres.IsUnavailable(err) {
			return h.guests.HandleCleared(ctx, guest, postgres.Problem(err))
		}
		if list, err = wishlist.DecodeCopy(copied); err != nil {
			return err
		}
		answer.Degraded = append(answer.Degraded, view.Degraded{Part: "wishlist", Reason: string(upstream.Unavailable)})
	}
	h.addCards(ctx, guest, list.NewestFirst(), &answer)
	h.guests.Finish(ctx, w, guest, nil, func(pipe redis.Pipeliner) {
		if fromPostgres {
			h.store.EnqueueRepair(ctx, pipe, guest.ID, list, copied, found)
		}
	})
	return web.WriteJSON(w, http.StatusOK, answer)
}

// addCards fills in the items of the answer, with cards and brands from the cache or the upstreams.
// A hotel that search-aggregation does not list has no card, nor has a hotel of a suspended tenant.
// Missing parts are named in "degraded".
func (h *List) addCards(ctx context.Context, guest *guest.Guest, items []wishlist.Item, into *listResponse) {
	defer web.FromContext(ctx).Phase("compose")()
	properties := make([]string, len(items))
	for i, item := range items {
		properties[i] = item.PropertyID
	}
	hits, missing := h.parts.Hits(ctx, properties, guest.Locale, guest.Currency)
	into.Degraded = append(into.Degraded, missing...)
	seen := map[string]bool{}
	var tenants []string
	for _, hit := range hits {
		if !seen[hit.TenantID] && !guest.Suspended.Has(hit.TenantID) {
			seen[hit.TenantID] = true
			tenants = append(tenants, hit.TenantID)
		}
	}
	brands, _, missing := h.parts.Brands(ctx, tenants)
	into.Degraded = append(into.Degraded, missing...)

	into.Size = len(items)
	for _, item := range items {
		e := listItem{Item: item}
		if hit := hits[item.PropertyID]; hit != nil && !guest.Suspended.Has(hit.TenantID) {
			card := view.NewCard(hit, brands[hit.TenantID], h.region)
			e.Listing = &card
		}
		into.Items = append(into.Items, e)
	}
}
