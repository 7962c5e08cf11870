package detail

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"melmastoon.ghasi.io/bff-consumer/shared/cache"
	"melmastoon.ghasi.io/bff-consumer/shared/compose"
	"melmastoon.ghasi.io/bff-consumer/shared/handoff"
	"melmastoon.ghasi.io/bff-consumer/shared/upstream"
	"melmastoon.ghasi.io/bff-consumer/shared/view"
)

const (
	calendarDays = 7
	// searchTimeout bounds the call of search-aggregation to the time of one try.
	searchTimeout = 1500 * time.Millisecond
	// compositionReserve is the rest of the load's budget, after the optional parts, to compose the
	// page.
	compositionReserve = 100 * time.Millisecond
)

// load composes the page. Calls of property-service and search-aggregation run side by side;
// pricing and theme-config need the tenant, so their calls follow the answers. Only the property is
// mandatory: errors come from property-service and of encoding, and a missing optional part is
// named in "degraded".
//
// The property has no separate cache entry: this page is the entry.
func (d *Detail) load(ctx context.Context, q pageRequest) (cache.Loaded, error) {
	// when property-service fails, the other parts are no longer needed
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	optional, cancelOptional := withReserve(ctx)
	defer cancelOptional()
	var (
		rest    sync.WaitGroup
		found   searchPart
		brands  map[string]*upstream.Brand
		parts   []cache.Dependency
		missing [2][]view.Degraded
		quotes  map[string]upstream.Quote
	)
	rest.Go(func() { found = d.loadSearchPart(optional, q) })
	property, err := d.upstreams.Property.Get(ctx, q.propertyID, q.locale)
	if errors.Is(err, upstream.ErrNotFound) {
		return notFoundEntry(q.propertyID)
	}
	if err != nil {
		return cache.Loaded{}, err
	}
	s := view.DefaultStay(d.now())
	rest.Go(func() { quotes, missing[0] = d.parts.Rates(optional, quoteRequest(q, property.TenantID, s)) })
	rest.Go(func() { brands, parts, missing[1] = d.parts.Brands(optional, []string{property.TenantID}) })
	rest.Wait()

	hint := view.HandoffHint{URL: d.link.URL(property.TenantSlug), TTLSeconds: int(handoff.TTL / time.Second)}
	page := view.NewHotelDetail(&property, found.hotel, mergeBrands(brands, found.brands), d.region, hint)
	page.Locale, page.Currency = q.locale, q.currency
	for _, part := range slices.Concat(found.missing, missing[0], missing[1]) {
		if !page.IsDegraded(part.Part) {
			page.Degraded = append(page.Degraded, part)
		}
	}
	loaded, err := d.packWithRates(page, s, quotes)
	loaded.Tags = cacheTags(page)
	loaded.DependsOn = slices.Concat(parts, found.parts)
	if page.IsDegraded("search") || page.IsDegraded("theme") {
		loaded.TTL = partialTTL
	}
	return loaded, err
}

// refreshRates replaces the rates of a cached page by new quotes and leaves the rest as it is. It
// returns the error of pricing; then the cache serves the old entry.
func (d *Detail) refreshRates(ctx context.Context, q pageRequest, old *cache.Entry) (cache.Loaded, error) {
	page, err := decodePage(old)
	if err != nil {
		return cache.Loaded{}, err
	}
	s := view.DefaultStay(d.now())
	quotes, err := d.upstreams.Pricing.Preview(ctx, quoteRequest(q, page.Property.TenantID, s))
	if err != nil {
		return cache.Loaded{}, err
	}
	page.ClearDegraded("pricing")
	return d.packWithRates(page, s, quotes) // the load registered the tags for as long as the entry is kept
}

// packWithRates sets the rate of the stay, packs the page and sets the time of the next refresh of
// rates: after pricingRetryDelay (2 s) when pricing did not answer, after a minute when the stay is
// sold out, else when the rate expires.
func (d *Detail) packWithRates(page *view.HotelDetail, s view.Stay, quotes map[string]upstream.Quote) (cache.Loaded, error) {
	var quote *upstream.Quote
	if found, ok := quotes[page.Property.PropertyID]; ok {
		quote = &found
	}
	until := page.SetRate(s, quote, d.now())
	if page.IsDegraded("pricing") {
		until = d.now().Add(pricingRetryDelay)
	}
	entry, err := pack(page, page.TenantIDs(), len(page.Degraded) > 0, quote != nil)
	entry.RatesFreshUntil = until
	return cache.Loaded{Entry: entry}, err
}

// searchPart is the share of search-aggregation in a page, with the brands of the similar hotels.
type searchPart struct {
	hotel   *upstream.Hotel // nil: no answer, or the hotel is not listed
	brands  map[string]*upstream.Brand
	parts   []cache.Dependency // the cache entries of the brands
	missing []view.Degraded
}

// loadSearchPart calls search-aggregation, within 1.5 s, and then gets the brands of similar
// hotels, within 750 ms. A failure is named in missing; an unlisted hotel is no failure.
func (d *Detail) loadSearchPart(ctx context.Context, q pageRequest) searchPart {
	searchCtx, cancel := context.WithTimeout(ctx, searchTimeout)
	defer cancel()
	found, err := d.upstreams.Search.Hotel(searchCtx, q.propertyID, q.locale, q.currency)
	if errors.Is(err, upstream.ErrNotFound) {
		return searchPart{}
	}
	if err != nil {
		return searchPart{missing: compose.DegradedPart("search", err)}
	}
	var tenants []string
	for i := range found.Similar {
		if tenant := found.Similar[i].TenantID; !slices.Contains(tenants, tenant) {
			tenants = append(tenants, tenant)
		}
	}
	part := searchPart{hotel: &found}
	part.brands, part.parts, part.missing = d.parts.Brands(ctx, tenants)
	return part
}

// withReserve returns a context that ends compositionReserve (100 ms) before ctx.
func withReserve(ctx context.Context) (context.Context, context.CancelFunc) {
	deadline, limited := ctx.Deadline()
	if !limited {
		return context.WithCancel(ctx)
	}
	return context.WithDeadline(ctx, deadline.Add(-compositionReserve))
}

func quoteRequest(q pageRequest, tenant string, s view.Stay) upstream.QuoteRequest {
	return upstream.QuoteRequest{
		Properties: []upstream.PropertyRef{{PropertyID: q.propertyID, TenantID: tenant}},
		Dates:      s.Dates, Occupancy: s.Occupancy, Currency: q.currency, Locale: q.locale,
		Calendar: &upstream.CalendarSpan{From: s.Dates.CheckIn, Days: calendarDays},
	}
}

// cacheTags returns the invalidation tags of a page: every hotel and every tenant on the page.
func cacheTags(page *view.HotelDetail) []string {
	list := []string{cache.PropertyTag(page.Property.PropertyID)}
	for _, tenant := range page.TenantIDs() {
		list = append(list, cache.TenantTag(tenant))
	}
	for _, card := range page.SimilarProperties {
		list = append(list, cache.PropertyTag(card.PropertyID))
	}
	return list
}

// mergeBrands returns a new map with the brands of both maps; either may be nil.
func mergeBrands(a, b map[string]*upstream.Brand) map[string]*upstream.Brand {
	merged := make(map[string]*upstream.Brand, len(a)+len(b))
	maps.Copy(merged, a)
	maps.Copy(merged, b)
	return merged
}
