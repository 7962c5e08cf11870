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
	"melmastoon.ghasi.io/bff-consumer/shared/wiring"
	"melmastoon.ghasi.io/bff-consumer/shared/wishlist"
)

// List answers GET /wishlist.
type List struct {
	guests   *guest.Controller
	sessions *session.Store
	store    *wishlist.Store
	parts    *compose.Fetcher
	region   string
}

// NewList makes the handler.
func NewList(p *wiring.Deps, room *wishlist.Store) *List {
	return &List{p.Guests, p.Sessions, room, p.Compose, p.Region}
}

type listResponse struct {
	Size     int             `json:"size"`
	Items    []listItem      `json:"items"`
	Degraded []view.Degraded `json:"degraded"`
}

// listItem is one item with the card of its hotel; null when there is none to show.
type listItem struct {
	wishlist.Item
	Listing *view.ListingCard `json:"listing"`
}

// Serve answers the list, newest first. The record is read, and corrects the copy; while Postgres is away the copy is
// shown, and without one there is no answer.
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
	copied, there := lists.Wishlist(guest.Session)
	done := web.FromContext(ctx).Phase("record")
	get := h.store.Get
	if !there {
		get = h.store.GetWithoutCopy
	}
	list, err := get(ctx, guest.ID)
	done()
	onRecord := err == nil
	if err != nil {
		if !there || !postgres.IsUnavailable(err) {
			return h.guests.HandleCleared(ctx, guest, postgres.Problem(err))
		}
		if list, err = wishlist.DecodeCopy(copied); err != nil {
			return err
		}
		answer.Degraded = append(answer.Degraded, view.Degraded{Part: "wishlist", Reason: string(upstream.Unavailable)})
	}
	h.addCards(ctx, guest, list.NewestFirst(), &answer)
	h.guests.Finish(ctx, w, guest, nil, func(pipe redis.Pipeliner) {
		if onRecord {
			h.store.EnqueueRepair(ctx, pipe, guest.ID, list, copied, there)
		}
	})
	return web.WriteJSON(w, http.StatusOK, answer)
}

// addCards puts the cards to the items. A hotel that is not listed, and one whose tenant is suspended, has none.
func (h *List) addCards(ctx context.Context, guest *guest.Guest, items []wishlist.Item, into *listResponse) {
	defer web.FromContext(ctx).Phase("compose")()
	properties := make([]string, len(items))
	for i, item := range items {
		properties[i] = item.PropertyID
	}
	hits, missing := h.parts.Hits(ctx, properties, guest.Locale, guest.Currency)
	into.Degraded = append(into.Degraded, missing...)
	tenants := map[string]bool{}
	var owners []string
	for _, hit := range hits {
		if !tenants[hit.TenantID] && !guest.Suspended.Has(hit.TenantID) {
			tenants[hit.TenantID] = true
			owners = append(owners, hit.TenantID)
		}
	}
	brands, _, missing := h.parts.Brands(ctx, owners)
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
