package detail

import (
	"context"
	"errors"
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
	// searchTimeout is what search-aggregation gets for the part of a page that is its: one try's time.
	searchTimeout = 1500 * time.Millisecond
	// compositionReserve is what optional parts leave of the time there is, to put together what came in time.
	compositionReserve = 100 * time.Millisecond
)

// load makes the page. Property-service and search-aggregation are asked at once; pricing and theme-config need the
// tenant, so they follow as soon as the one or the other has named it. Only the property must be there.
//
// The property is asked for and not taken from a cache entry of its own: this page is that entry.
func (d *Detail) load(ctx context.Context, h pageRequest) (cache.Loaded, error) {
	ctx, cancel := context.WithCancel(ctx) // without the property nobody waits for the rest
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
	rest.Go(func() { found = d.loadSearchPart(optional, h) })
	property, err := d.upstreams.Property.Get(ctx, h.propertyID, h.locale)
	if errors.Is(err, upstream.ErrNotFound) {
		return notFoundEntry(h.propertyID)
	}
	if err != nil {
		return cache.Loaded{}, err
	}
	s := view.DefaultStay(d.now())
	rest.Go(func() { quotes, missing[0] = d.parts.Rates(optional, quoteRequest(h, property.TenantID, s)) })
	rest.Go(func() { brands, parts, missing[1] = d.parts.Brands(optional, []string{property.TenantID}) })
	rest.Wait()

	hint := view.HandoffHint{URL: d.link.URL(property.TenantSlug), TTLSeconds: int(handoff.TTL / time.Second)}
	page := view.NewHotelDetail(&property, found.hotel, mergeBrands(brands, found.brands), d.region, hint)
	page.Locale, page.Currency = h.locale, h.currency
	for _, part := range slices.Concat(found.missing, missing[0], missing[1]) {
		if !page.IsDegraded(part.Part) {
			page.Degraded = append(page.Degraded, part)
		}
	}
	filled, err := d.packWithRates(page, s, quotes)
	filled.Tags = cacheTags(page)
	filled.DependsOn = slices.Concat(parts, found.parts)
	if page.IsDegraded("search") || page.IsDegraded("theme") {
		filled.TTL = partialTTL
	}
	return filled, err
}

// refreshRates re-fetches the rates of a kept page, and nothing else.
func (d *Detail) refreshRates(ctx context.Context, h pageRequest, old *cache.Entry) (cache.Loaded, error) {
	page, err := decodePage(old)
	if err != nil {
		return cache.Loaded{}, err
	}
	s := view.DefaultStay(d.now())
	quotes, err := d.upstreams.Pricing.Preview(ctx, quoteRequest(h, page.Property.TenantID, s))
	if err != nil {
		return cache.Loaded{}, err
	}
	page.ClearDegraded("pricing")
	return d.packWithRates(page, s, quotes) // its tags stand: they were set for as long as the entry is kept
}

// packWithRates puts the rate of the stay on the page and packs it, with a note when to ask pricing again: soon when it
// did not answer, else when the rate's time is over, and within the minute when the stay is sold out.
func (d *Detail) packWithRates(page *view.HotelDetail, s view.Stay, quotes map[string]upstream.Quote) (cache.Loaded, error) {
	var quote *upstream.Quote
	if q, ok := quotes[page.Property.PropertyID]; ok {
		quote = &q
	}
	until := page.SetRate(s, quote, d.now())
	if page.IsDegraded("pricing") {
		until = d.now().Add(pricingRetryDelay)
	}
	entry, err := pack(page, page.TenantIDs(), len(page.Degraded) > 0, quote != nil)
	entry.RatesFreshUntil = until
	return cache.Loaded{Entry: entry}, err
}

// searchPart is the part of search-aggregation, with the brands of the hotels it finds similar.
type searchPart struct {
	hotel   *upstream.Hotel // nil: it has no answer, or does not list the hotel
	brands  map[string]*upstream.Brand
	parts   []cache.Dependency // the cache entries of the brands
	missing []view.Degraded
}

func (d *Detail) loadSearchPart(ctx context.Context, h pageRequest) searchPart {
	asking, cancel := context.WithTimeout(ctx, searchTimeout)
	defer cancel()
	found, err := d.upstreams.Search.Hotel(asking, h.propertyID, h.locale, h.currency)
	if errors.Is(err, upstream.ErrNotFound) {
		return searchPart{}
	}
	if err != nil {
		return searchPart{missing: compose.DegradedPart("search", err)}
	}
	var similar []string
	for i := range found.Similar {
		if tenant := found.Similar[i].TenantID; !slices.Contains(similar, tenant) {
			similar = append(similar, tenant)
		}
	}
	l := searchPart{hotel: &found}
	l.brands, l.parts, l.missing = d.parts.Brands(ctx, similar)
	return l
}

// withReserve is a context that ends a little before ctx does.
func withReserve(ctx context.Context) (context.Context, context.CancelFunc) {
	deadline, limited := ctx.Deadline()
	if !limited {
		return context.WithCancel(ctx)
	}
	return context.WithDeadline(ctx, deadline.Add(-compositionReserve))
}

func quoteRequest(h pageRequest, tenant string, s view.Stay) upstream.QuoteRequest {
	return upstream.QuoteRequest{
		Properties: []upstream.PropertyRef{{PropertyID: h.propertyID, TenantID: tenant}},
		Dates:      s.Dates, Occupancy: s.Occupancy, Currency: h.currency, Locale: h.locale,
		Calendar: &upstream.CalendarSpan{From: s.Dates.CheckIn, Days: calendarDays},
	}
}

// cacheTags are what empties a page: a change of any hotel or tenant on it.
func cacheTags(page *view.HotelDetail) []string {
	list := []string{cache.PropertyTag(page.Property.PropertyID)}
	for _, owner := range page.TenantIDs() {
		list = append(list, cache.TenantTag(owner))
	}
	for _, card := range page.SimilarProperties {
		list = append(list, cache.PropertyTag(card.PropertyID))
	}
	return list
}

// mergeBrands is both, either of which may be nil.
func mergeBrands(a, b map[string]*upstream.Brand) map[string]*upstream.Brand {
	all := make(map[string]*upstream.Brand, len(a)+len(b))
	for _, some := range []map[string]*upstream.Brand{a, b} {
		for tenant, brand := range some {
			all[tenant] = brand
		}
	}
	return all
}
