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
	// searchWall is what search-aggregation gets for the part of a page that is its: one try's time.
	searchWall = 1500 * time.Millisecond
	// spare is what optional parts leave of the time there is, to put together what came in time.
	spare = 100 * time.Millisecond
)

// fill makes the page. Property-service and search-aggregation are asked at once; pricing and theme-config need the
// tenant, so they follow as soon as the one or the other has named it. Only the property must be there.
//
// The property is asked for and not taken from a cache entry of its own: this page is that entry.
func (d *Detail) fill(ctx context.Context, h hotel) (cache.Filled, error) {
	ctx, cancel := context.WithCancel(ctx) // without the property nobody waits for the rest
	defer cancel()
	optional, cancelOptional := sparing(ctx)
	defer cancelOptional()
	var (
		rest    sync.WaitGroup
		found   listing
		brands  map[string]*upstream.Brand
		missing [2][]view.Degraded
		quotes  map[string]upstream.Quote
	)
	rest.Go(func() { found = d.ask(optional, h) })
	property, err := d.up.Property.Get(ctx, h.property, h.locale)
	if errors.Is(err, upstream.ErrNotFound) {
		return nothing(h.property)
	}
	if err != nil {
		return cache.Filled{}, err
	}
	s := view.DefaultStay(d.now())
	rest.Go(func() { quotes, missing[0] = d.parts.Rates(optional, quoteRequest(h, property.TenantID, s)) })
	rest.Go(func() { brands, missing[1] = d.parts.Brands(optional, []string{property.TenantID}) })
	rest.Wait()

	hint := view.HandoffHint{URL: d.link.Page(property.TenantSlug), TTLSeconds: int(handoff.TTL / time.Second)}
	page := view.Detail(&property, found.hotel, merge(brands, found.brands), d.region, hint)
	page.Locale, page.Currency = h.locale, h.currency
	for _, part := range slices.Concat(found.missing, missing[0], missing[1]) {
		if !page.Lacks(part.Part) {
			page.Degraded = append(page.Degraded, part)
		}
	}
	filled, err := d.packRated(page, s, quotes)
	filled.Tags = tags(page)
	if page.Lacks("search") || page.Lacks("theme") {
		filled.TTL = partialTTL
	}
	return filled, err
}

// renew re-fetches the rates of a kept page, and nothing else.
func (d *Detail) renew(ctx context.Context, h hotel, old *cache.Entry) (cache.Filled, error) {
	page, err := open(old)
	if err != nil {
		return cache.Filled{}, err
	}
	s := view.DefaultStay(d.now())
	quotes, err := d.up.Pricing.Preview(ctx, quoteRequest(h, page.Property.TenantID, s))
	if err != nil {
		return cache.Filled{}, err
	}
	page.Mended("pricing")
	return d.packRated(page, s, quotes) // its tags stand: they were set for as long as the entry is kept
}

// packRated puts the rate of the stay on the page and packs it, with a note when to ask pricing again: soon when it
// did not answer, else when the rate's time is over, and within the minute when the stay is sold out.
func (d *Detail) packRated(page *view.HotelDetail, s view.Stay, quotes map[string]upstream.Quote) (cache.Filled, error) {
	var quote *upstream.Quote
	if q, ok := quotes[page.Property.PropertyID]; ok {
		quote = &q
	}
	until := page.SetRate(s, quote, d.now())
	if page.Lacks("pricing") {
		until = d.now().Add(mendAfter)
	}
	entry, err := pack(page, page.Owners(), len(page.Degraded) > 0, quote != nil)
	entry.RatesUntil = until
	return cache.Filled{Entry: entry}, err
}

// listing is the part of search-aggregation, with the brands of the hotels it finds similar.
type listing struct {
	hotel   *upstream.Hotel // nil: it has no answer, or does not list the hotel
	brands  map[string]*upstream.Brand
	missing []view.Degraded
}

func (d *Detail) ask(ctx context.Context, h hotel) listing {
	asking, cancel := context.WithTimeout(ctx, searchWall)
	defer cancel()
	found, err := d.up.Search.Hotel(asking, h.property, h.locale, h.currency)
	if errors.Is(err, upstream.ErrNotFound) {
		return listing{}
	}
	if err != nil {
		return listing{missing: compose.Missing("search", err)}
	}
	var similar []string
	for i := range found.Similar {
		if tenant := found.Similar[i].TenantID; !slices.Contains(similar, tenant) {
			similar = append(similar, tenant)
		}
	}
	l := listing{hotel: &found}
	l.brands, l.missing = d.parts.Brands(ctx, similar)
	return l
}

// sparing is a context that ends a little before ctx does.
func sparing(ctx context.Context) (context.Context, context.CancelFunc) {
	deadline, limited := ctx.Deadline()
	if !limited {
		return context.WithCancel(ctx)
	}
	return context.WithDeadline(ctx, deadline.Add(-spare))
}

func quoteRequest(h hotel, tenant string, s view.Stay) upstream.QuoteRequest {
	return upstream.QuoteRequest{
		Properties: []upstream.PropertyRef{{PropertyID: h.property, TenantID: tenant}},
		Dates:      s.Dates, Occupancy: s.Occupancy, Currency: h.currency, Locale: h.locale,
		Calendar: &upstream.CalendarSpan{From: s.Dates.CheckIn, Days: calendarDays},
	}
}

// tags are what empties a page: a change of any hotel or tenant on it.
func tags(page *view.HotelDetail) []string {
	list := []string{cache.Property(page.Property.PropertyID)}
	for _, owner := range page.Owners() {
		list = append(list, cache.Tenant(owner))
	}
	for _, card := range page.SimilarProperties {
		list = append(list, cache.Property(card.PropertyID))
	}
	return list
}

// merge is both, either of which may be nil.
func merge(a, b map[string]*upstream.Brand) map[string]*upstream.Brand {
	all := make(map[string]*upstream.Brand, len(a)+len(b))
	for _, some := range []map[string]*upstream.Brand{a, b} {
		for tenant, brand := range some {
			all[tenant] = brand
		}
	}
	return all
}
