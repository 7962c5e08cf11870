package search

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	"melmastoon.ghasi.io/bff-consumer/shared/cache"
	"melmastoon.ghasi.io/bff-consumer/shared/geo"
	"melmastoon.ghasi.io/bff-consumer/shared/tenants"
	"melmastoon.ghasi.io/bff-consumer/shared/upstream"
	"melmastoon.ghasi.io/bff-consumer/shared/view"
	"melmastoon.ghasi.io/bff-consumer/shared/web"
)

// pack encodes and compresses a page into a cache entry. An entry without brands is fresh for
// missingBrandsTTL (15 s) only.
func pack(page *view.Page, tags []string) (cache.Loaded, error) {
	body, index, err := page.Encode()
	if err != nil {
		return cache.Loaded{}, err
	}
	entry, err := cache.NewEntry(http.StatusOK, body, page.TenantIDs(), index)
	if err != nil {
		return cache.Loaded{}, fmt.Errorf("search: pack page: %w", err)
	}
	loaded := cache.Loaded{Entry: entry, Tags: tags}
	if page.IsDegraded("theme") {
		loaded.TTL = missingBrandsTTL
	}
	return loaded, nil
}

// packList packs a list and sets the time of the next refresh of rates: when the first rate
// expires; after a minute when no card has a rate; after pricingRetryDelay (2 s) when pricing did
// not answer or a rate expires sooner. Rates with an earlier expiry than the refresh are marked
// stale now, because hits until the refresh are sent unchanged.
func (f *Finder) packList(page *view.Page, tags []string) (cache.Loaded, error) {
	until, soon := page.RatesFreshUntil(), f.now().Add(pricingRetryDelay)
	switch {
	case page.IsDegraded("pricing"):
		until = soon
	case until.IsZero():
		until = f.now().Add(time.Minute)
	case until.Before(soon):
		until = soon
	}
	page.MarkStale(soon)
	loaded, err := pack(page, tags)
	if len(page.Items) > 0 {
		loaded.RatesFreshUntil = until
	}
	return loaded, err
}

// decodePage decompresses and decodes a cached page for changes.
func decodePage(e *cache.Entry) (*view.Page, error) {
	body, err := e.Body()
	if err != nil {
		return nil, err
	}
	return view.DecodePage(body, e.Index, slices.Collect(e.TenantIDs()))
}

// logDegraded names the missing parts of a page in the log record of the composing request.
func logDegraded(ctx context.Context, page *view.Page) {
	if len(page.Degraded) > 0 {
		web.FromContext(ctx).AddLogField("degraded", page.Degraded)
	}
}

// prepareForResponse removes cards of suspended tenants and marks expired rates as stale. Nearly
// every entry needs neither and is returned as it is, without decompression. The only errors come
// from decoding and encoding.
func (f *Finder) prepareForResponse(e *cache.Entry, suspended *tenants.SuspendedSet) (*cache.Entry, error) {
	now := f.now()
	stale := !e.RatesFreshUntil.IsZero() && now.After(e.RatesFreshUntil)
	hasSuspended := false
	for owner := range e.TenantIDs() {
		hasSuspended = hasSuspended || suspended.Has(owner)
	}
	if !stale && !hasSuspended {
		return e, nil
	}
	page, err := decodePage(e)
	if err != nil {
		return nil, err
	}
	if hasSuspended {
		page.RemoveTenants(suspended.Has)
	}
	page.MarkStale(now)
	loaded, err := pack(page, nil)
	return &loaded.Entry, err
}

// cacheTags returns the invalidation tags of a page: the tenants and the cells of the area, or
// UnknownAreaTag without cells. A list also has a tag for each hotel, because a hotel may move out
// of the area. A map has no hotel tags, because a map has up to 250 hotels.
func cacheTags(page *view.Page, area upstream.Area, found []geo.Cell) []string {
	var list []string
	for _, owner := range page.TenantIDs() {
		list = append(list, cache.TenantTag(owner))
	}
	for n := 0; n < len(page.Items) && page.Member == listingsMember; n++ {
		list = append(list, cache.PropertyTag(page.Items[n].PropertyID()))
	}
	cells := coveringCells(area, found)
	if len(cells) == 0 {
		list = append(list, cache.UnknownAreaTag)
	}
	for _, cell := range cells {
		list = append(list, cache.CellTag(cell.String()))
	}
	return list
}

const (
	listingsMember = "listings"
	pinsMember     = "pins"
)

// maxCoverCells bounds the cells of an area. More cells would cover the area more closely, but each
// cell costs a Redis command when the page is stored.
const maxCoverCells = 16

// coveringCells returns the H3 cells of an area: computed here for a circle or box, taken from
// search-aggregation's answer for a city or region.
func coveringCells(area upstream.Area, found []geo.Cell) []geo.Cell {
	switch {
	case area.Point != nil:
		return geo.CoverCircle(geo.Point{Lat: area.Point.Lat, Lng: area.Point.Lng}, area.Point.RadiusKm, maxCoverCells)
	case area.BoundingBox != nil:
		return geo.CoverBox(*area.BoundingBox, maxCoverCells)
	default:
		return found
	}
}

// listMembers encodes the members behind the cards of a list, which are the same for every guest.
func listMembers(q upstream.SearchQuery, hash string, found upstream.SearchResult) ([]byte, error) {
	members := []member{
		{"queryHash", hash}, {"page", q.Page}, {"sortKey", q.SortKey}, {"locale", q.Locale}, {"currency", q.Currency},
	}
	return encodeMembers(members, found)
}

// mapMembers is listMembers for a map, without page and sort key.
func mapMembers(q upstream.SearchQuery, hash string, found upstream.SearchResult) ([]byte, error) {
	return encodeMembers([]member{{"queryHash", hash}, {"locale", q.Locale}, {"currency", q.Currency}}, found)
}

type member struct {
	name  string
	value any
}

// encodeMembers encodes the members in order, each with a leading comma, and appends the optional
// members of search-aggregation's answer.
func encodeMembers(members []member, found upstream.SearchResult) (out []byte, err error) {
	if found.QueryRewriteHint != nil {
		members = append(members, member{"queryRewriteHint", found.QueryRewriteHint})
	}
	if found.AIProvenance != nil {
		members = append(members, member{"aiProvenance", found.AIProvenance})
	}
	for _, m := range members {
		if out, err = view.AppendMember(out, m.name, m.value); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func quoteRequest(q upstream.SearchQuery, properties []upstream.PropertyRef) upstream.QuoteRequest {
	return upstream.QuoteRequest{
		Properties: properties, Dates: q.Dates, Occupancy: q.Occupancy, Currency: q.Currency, Locale: q.Locale,
	}
}

func propertyRefs(hits []upstream.Hit) []upstream.PropertyRef {
	list := make([]upstream.PropertyRef, len(hits))
	for i := range hits {
		list[i] = upstream.PropertyRef{PropertyID: hits[i].PropertyID, TenantID: hits[i].TenantID}
	}
	return list
}

// distinctTenants returns the tenants of the hits without duplicates, in order of rank.
func distinctTenants(hits []upstream.Hit) []string {
	var list []string
	seen := map[string]bool{}
	for i := range hits {
		if tenant := hits[i].TenantID; !seen[tenant] {
			seen[tenant] = true
			list = append(list, tenant)
		}
	}
	return list
}
