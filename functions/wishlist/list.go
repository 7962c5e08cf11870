package wishlist

import (
	"context"
	"net/http"

	"github.com/redis/go-redis/v9"

	"melmastoon.ghasi.io/bff-consumer/shared/admission"
	"melmastoon.ghasi.io/bff-consumer/shared/compose"
	"melmastoon.ghasi.io/bff-consumer/shared/postgres"
	"melmastoon.ghasi.io/bff-consumer/shared/session"
	"melmastoon.ghasi.io/bff-consumer/shared/setup"
	"melmastoon.ghasi.io/bff-consumer/shared/upstream"
	"melmastoon.ghasi.io/bff-consumer/shared/view"
	"melmastoon.ghasi.io/bff-consumer/shared/web"
	"melmastoon.ghasi.io/bff-consumer/shared/wishlist"
)

// List answers GET /wishlist.
type List struct {
	door     *admission.Door
	sessions *session.Room
	room     *wishlist.Room
	parts    *compose.Parts
	region   string
}

// NewList makes the handler.
func NewList(p *setup.Parts, room *wishlist.Room) *List {
	return &List{p.Door, p.Sessions, room, p.Compose, p.Region}
}

type listed struct {
	Size     int             `json:"size"`
	Items    []entry         `json:"items"`
	Degraded []view.Degraded `json:"degraded"`
}

// entry is one item with the card of its hotel; null when there is none to show.
type entry struct {
	wishlist.Item
	Listing *view.ListingCard `json:"listing"`
}

// Serve answers the list, newest first. The record is read, and corrects the copy; while Postgres is away the copy is
// shown, and without one there is no answer.
func (h *List) Serve(w http.ResponseWriter, r *http.Request) error {
	var lists *session.Lists
	ctx, guest, err := h.door.Admit(w, r, nil, func(ctx context.Context, pipe redis.Pipeliner, id string) {
		lists = h.sessions.PeekLists(ctx, pipe, id)
	})
	if err != nil {
		return err
	}
	var answer listed
	copied, there := lists.Wishlist(guest.Session)
	done := web.From(ctx).Phase("record")
	get := h.room.Get
	if !there {
		get = h.room.GetUncopied
	}
	list, err := get(ctx, guest.ID)
	done()
	onRecord := err == nil
	if err != nil {
		if !there || !postgres.IsAway(err) {
			return h.door.Refused(ctx, guest, postgres.Problem(err))
		}
		if list, err = wishlist.Decode(copied); err != nil {
			return err
		}
		answer.Degraded = append(answer.Degraded, view.Degraded{Part: "wishlist", Reason: string(upstream.Unavailable)})
	}
	h.show(ctx, guest, list.Newest(), &answer)
	h.door.Leave(ctx, w, guest, nil, func(pipe redis.Pipeliner) {
		if onRecord {
			h.room.Repair(ctx, pipe, guest.ID, list, copied, there)
		}
	})
	return web.WriteJSON(w, http.StatusOK, answer)
}

// show puts the cards to the items. A hotel that is not listed, and one whose tenant is suspended, has none.
func (h *List) show(ctx context.Context, guest *admission.Guest, items []wishlist.Item, into *listed) {
	defer web.From(ctx).Phase("compose")()
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
	brands, missing := h.parts.Brands(ctx, owners)
	into.Degraded = append(into.Degraded, missing...)

	into.Size = len(items)
	for _, item := range items {
		e := entry{Item: item}
		if hit := hits[item.PropertyID]; hit != nil && !guest.Suspended.Has(hit.TenantID) {
			card := view.Card(hit, brands[hit.TenantID], h.region)
			e.Listing = &card
		}
		into.Items = append(into.Items, e)
	}
}
