package detail

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"melmastoon.ghasi.io/bff-consumer/shared/cache"
	"melmastoon.ghasi.io/bff-consumer/shared/compose"
	"melmastoon.ghasi.io/bff-consumer/shared/problem"
	"melmastoon.ghasi.io/bff-consumer/shared/redisclient"
	"melmastoon.ghasi.io/bff-consumer/shared/upstream"
	"melmastoon.ghasi.io/bff-consumer/shared/view"
	"melmastoon.ghasi.io/bff-consumer/shared/web"
	"melmastoon.ghasi.io/bff-consumer/shared/wiring"
)

// Availability answers GET /hotels/{propertyId}/availability. Safe for concurrent use.
type Availability struct {
	cachedHandler
	keys      redisclient.Keys
	upstreams *upstream.Upstreams
	parts     *compose.Fetcher
}

// NewAvailability makes the handler.
func NewAvailability(p *wiring.Deps) *Availability {
	return &Availability{newCachedHandler(p), p.Keys, p.Upstreams, p.Compose}
}

const availabilityTTL = time.Minute

// Serve answers which nights are free. The answer is the same in every language and currency.
func (a *Availability) Serve(w http.ResponseWriter, r *http.Request) error {
	property, err := propertyFromPath(r)
	if err != nil {
		return err
	}
	in, err := web.ReadSharedQuery(r, "from", "to", "adults", "children", "rooms")
	if err != nil {
		return err
	}
	q, wrong := parseAvailabilityQuery(in.Values, a.now())
	if len(wrong) > 0 {
		return problem.Invalid(wrong...)
	}
	q.PropertyID = property
	entry, state, _, err := a.lookup(w, r, a.cacheKey(q), cache.Loader{
		TTL:  availabilityTTL,
		Load: func(ctx context.Context) (cache.Loaded, error) { return a.load(ctx, q) },
	})
	if err != nil {
		return err
	}
	if entry, err = a.prepareForResponse(entry, state); err != nil {
		return err
	}
	return a.respond(w, r, in, entry, state)
}

func (a *Availability) cacheKey(q upstream.AvailabilityQuery) string {
	occupancy := fmt.Sprintf("%d-%d-%d", q.Adults, q.Children, q.Rooms)
	return a.keys.Key("cache", "availability", q.PropertyID, q.From.String(), q.To.String(), occupancy)
}

// load asks search-aggregation for the days and, beside it, whose hotel it is: the answer of a suspended tenant's is
// not shown. Without a word about the owner the answer is a partial one, soon made anew.
func (a *Availability) load(ctx context.Context, q upstream.AvailabilityQuery) (cache.Loaded, error) {
	ctx, cancel := context.WithCancel(ctx) // without the days nobody waits for the owner
	defer cancel()
	aside, cancelAside := withReserve(ctx)
	defer cancelAside()
	type found struct {
		owner compose.Owner
		part  cache.Dependency
		err   error
	}
	owner := make(chan found, 1)
	go func() {
		o, part, err := a.parts.Owner(aside, q.PropertyID, nil)
		owner <- found{o, part, err}
	}()
	days, err := a.upstreams.Search.Availability(ctx, q)
	if errors.Is(err, upstream.ErrNotFound) {
		return notFoundEntry(q.PropertyID)
	}
	if err != nil {
		return cache.Loaded{}, err
	}
	of := <-owner
	if errors.Is(of.err, upstream.ErrNotFound) {
		return notFoundEntry(q.PropertyID)
	}
	page := view.NewAvailability(q, days)
	page.Degraded = compose.DegradedPart("property", of.err)
	filled := cache.Loaded{Tags: []string{cache.PropertyTag(q.PropertyID)}}
	var owners []string
	if of.err == nil {
		owners = []string{of.owner.TenantID}
		filled.DependsOn = []cache.Dependency{of.part}
		filled.Tags = append(filled.Tags, cache.TenantTag(of.owner.TenantID))
	} else {
		filled.TTL = partialTTL
	}
	filled.Entry, err = pack(page, owners, of.err != nil, page.HasPrice())
	filled.RatesFreshUntil = a.now().Add(availabilityTTL)
	return filled, err
}

// prepareForResponse is the entry as it may be shown now: with prices marked stale whose time is over.
func (a *Availability) prepareForResponse(e *cache.Entry, state cache.State) (*cache.Entry, error) {
	if !a.ratesExpired(e) {
		return e, nil
	}
	body, err := e.Body()
	if err != nil {
		return nil, err
	}
	page, err := view.DecodeAvailability(body)
	if err != nil {
		return nil, err
	}
	page.MarkStale()
	entry, err := pack(page, nil, true, true)
	return &entry, err
}
