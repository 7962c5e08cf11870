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
)

// Availability handles GET /hotels/{propertyId}/availability. Safe for concurrent use.
type Availability struct {
	cachedHandler
	keys      redisclient.Keys
	upstreams *upstream.Upstreams
	parts     *compose.Fetcher
}

const availabilityTTL = time.Minute

// Serve answers GET /hotels/{propertyId}/availability with the free nights of at most 62 days. The
// answer is shared (public) and the same in every language and currency. web.Budget bounds the
// request to 2.5 s. Invalid parameters are 422; an unknown hotel is 404 for 30 s, and a suspended
// tenant's hotel is 404.
//
// A warm hit costs a Redis round trip of at most 100 ms, which writes rate-limit counters only, and
// no call to Postgres or an upstream. An entry is fresh for a minute (± 10 %), or 15 s without
// property-service. A load costs calls of search-aggregation and, unless the cache has the owner,
// of property-service, and three or more Redis round trips. A single flight among all processes
// loads; callers without a stored entry wait for the load until their deadline.
//
// Without Redis each process loads by itself and stores nothing. Without Postgres the answer is the
// same. Without search-aggregation the stored entry is served up to 10 minutes past its freshness,
// with expired prices marked stale; else the answer is 503, or 504 when time ran out. Without
// property-service the owner is unknown: "degraded" names "property", and a suspended tenant's
// hotel is not hidden. An instance without any copy of the suspended tenants hides no hotel.
func (a *Availability) Serve(w http.ResponseWriter, r *http.Request) error {
	property, err := propertyFromPath(r)
	if err != nil {
		return err
	}
	in, err := web.ReadSharedQuery(r, "from", "to", "adults", "children", "rooms")
	if err != nil {
		return err
	}
	q, faults := parseAvailabilityQuery(in.Values, a.now())
	if len(faults) > 0 {
		return problem.Invalid(faults...)
	}
	q.PropertyID = property
	entry, state, _, err := a.lookup(w, r, a.cacheKey(q), cache.Loader{
		TTL:  availabilityTTL,
		Load: func(ctx context.Context) (cache.Loaded, error) { return a.load(ctx, q) },
	})
	if err != nil {
		return err
	}
	if entry, err = a.prepareForResponse(entry); err != nil {
		return err
	}
	return a.respond(w, r, in, entry, state)
}

func (a *Availability) cacheKey(q upstream.AvailabilityQuery) string {
	occupancy := fmt.Sprintf("%d-%d-%d", q.Adults, q.Children, q.Rooms)
	return a.keys.Key("cache", "availability", q.PropertyID, q.From.String(), q.To.String(), occupancy)
}

// load gets the days from search-aggregation and, side by side, the owner of the hotel from the
// cache or property-service. lookup needs the owner to hide the hotels of suspended tenants.
// Without an answer about the owner the page is partial and fresh for partialTTL. Errors come from
// search-aggregation and of encoding.
func (a *Availability) load(ctx context.Context, q upstream.AvailabilityQuery) (cache.Loaded, error) {
	ctx, cancel := context.WithCancel(ctx) // when search-aggregation fails, the owner is no longer needed
	defer cancel()
	ownerCtx, cancelOwner := withReserve(ctx)
	defer cancelOwner()
	type ownerResult struct {
		owner compose.Owner
		part  cache.Dependency
		err   error
	}
	ownerDone := make(chan ownerResult, 1)
	go func() {
		owner, part, err := a.parts.Owner(ownerCtx, q.PropertyID, nil)
		ownerDone <- ownerResult{owner, part, err}
	}()
	days, err := a.upstreams.Search.Availability(ctx, q)
	if errors.Is(err, upstream.ErrNotFound) {
		return notFoundEntry(q.PropertyID)
	}
	if err != nil {
		return cache.Loaded{}, err
	}
	found := <-ownerDone
	if errors.Is(found.err, upstream.ErrNotFound) {
		return notFoundEntry(q.PropertyID)
	}
	page := view.NewAvailability(q, days)
	page.Degraded = compose.DegradedPart("property", found.err)
	loaded := cache.Loaded{Tags: []string{cache.PropertyTag(q.PropertyID)}}
	var tenants []string
	if found.err == nil {
		tenants = []string{found.owner.TenantID}
		loaded.DependsOn = []cache.Dependency{found.part}
		loaded.Tags = append(loaded.Tags, cache.TenantTag(found.owner.TenantID))
	} else {
		loaded.TTL = partialTTL
	}
	loaded.Entry, err = pack(page, tenants, found.err != nil, page.HasPrice())
	loaded.RatesFreshUntil = a.now().Add(availabilityTTL)
	return loaded, err
}

// prepareForResponse returns the entry with expired prices marked as stale. An entry without
// expired prices is returned as it is, without decompression.
func (a *Availability) prepareForResponse(e *cache.Entry) (*cache.Entry, error) {
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
