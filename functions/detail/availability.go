package detail

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"melmastoon.ghasi.io/bff-consumer/shared/cache"
	"melmastoon.ghasi.io/bff-consumer/shared/compose"
	"melmastoon.ghasi.io/bff-consumer/shared/keyspace"
	"melmastoon.ghasi.io/bff-consumer/shared/problem"
	"melmastoon.ghasi.io/bff-consumer/shared/setup"
	"melmastoon.ghasi.io/bff-consumer/shared/upstream"
	"melmastoon.ghasi.io/bff-consumer/shared/view"
	"melmastoon.ghasi.io/bff-consumer/shared/web"
)

// Availability answers GET /hotels/{propertyId}/availability. Safe for concurrent use.
type Availability struct {
	shelf
	keys  keyspace.Keys
	up    *upstream.Upstreams
	parts *compose.Parts
}

// NewAvailability makes the handler.
func NewAvailability(p *setup.Parts) *Availability {
	return &Availability{newShelf(p), p.Keys, p.Upstreams, p.Compose}
}

const availabilityTTL = time.Minute

// Serve answers which nights are free. The answer is the same in every language and currency.
func (a *Availability) Serve(w http.ResponseWriter, r *http.Request) error {
	property, err := propertyIn(r)
	if err != nil {
		return err
	}
	in, err := web.ReadSharedQuery(r, "from", "to", "adults", "children", "rooms")
	if err != nil {
		return err
	}
	q, wrong := read(in.Values, a.now())
	if len(wrong) > 0 {
		return problem.Invalid(wrong...)
	}
	q.PropertyID = property
	entry, state, _, err := a.find(w, r, a.key(q), cache.Recipe{
		TTL:  availabilityTTL,
		Fill: func(ctx context.Context) (cache.Filled, error) { return a.fill(ctx, q) },
	})
	if err != nil {
		return err
	}
	if entry, err = a.shown(entry, state); err != nil {
		return err
	}
	return a.answer(w, r, in, entry, state)
}

func (a *Availability) key(q upstream.AvailabilityQuery) string {
	occupancy := fmt.Sprintf("%d-%d-%d", q.Adults, q.Children, q.Rooms)
	return a.keys.Key("cache", "availability", q.PropertyID, q.From.String(), q.To.String(), occupancy)
}

// fill asks search-aggregation for the days and, beside it, whose hotel it is: the answer of a suspended tenant's is
// not shown. Without a word about the owner the answer is a partial one, soon made anew.
func (a *Availability) fill(ctx context.Context, q upstream.AvailabilityQuery) (cache.Filled, error) {
	ctx, cancel := context.WithCancel(ctx) // without the days nobody waits for the owner
	defer cancel()
	aside, cancelAside := sparing(ctx)
	defer cancelAside()
	type found struct {
		owner compose.Owner
		err   error
	}
	owner := make(chan found, 1)
	go func() {
		o, err := a.parts.Owner(aside, q.PropertyID, nil)
		owner <- found{o, err}
	}()
	days, err := a.up.Search.Availability(ctx, q)
	if errors.Is(err, upstream.ErrNotFound) {
		return nothing(q.PropertyID)
	}
	if err != nil {
		return cache.Filled{}, err
	}
	of := <-owner
	if errors.Is(of.err, upstream.ErrNotFound) {
		return nothing(q.PropertyID)
	}
	page := view.Days(q, days)
	page.Degraded = compose.Missing("property", of.err)
	filled := cache.Filled{Tags: []string{cache.Property(q.PropertyID)}}
	var owners []string
	if of.err == nil {
		owners = []string{of.owner.TenantID}
		filled.Tags = append(filled.Tags, cache.Tenant(of.owner.TenantID))
	} else {
		filled.TTL = partialTTL
	}
	filled.Entry, err = pack(page, owners, of.err != nil, page.Priced())
	filled.RatesUntil = a.now().Add(availabilityTTL)
	return filled, err
}

// shown is the entry as it may be shown now: with prices marked stale whose time is over.
func (a *Availability) shown(e *cache.Entry, state cache.State) (*cache.Entry, error) {
	if !a.overdue(e) {
		return e, nil
	}
	body, err := e.Body()
	if err != nil {
		return nil, err
	}
	page, err := view.OpenAvailability(body)
	if err != nil {
		return nil, err
	}
	page.MarkStale()
	entry, err := pack(page, nil, true, true)
	return &entry, err
}
