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

// pack makes the cache entry of a page. One that lacks brands is kept for a short while only.
func pack(page *view.Page, tags []string) (cache.Loaded, error) {
	body, index, err := page.Encode()
	if err != nil {
		return cache.Loaded{}, err
	}
	entry, err := cache.NewEntry(http.StatusOK, body, page.TenantIDs(), index)
	if err != nil {
		return cache.Loaded{}, fmt.Errorf("search: pack page: %w", err)
	}
	filled := cache.Loaded{Entry: entry, Tags: tags}
	if page.IsDegraded("theme") {
		filled.TTL = missingBrandsTTL
	}
	return filled, nil
}

// packList is pack for a list, which also says when its rates are due: when the first of them is over,
// within the minute when none is shown, and soon when pricing did not answer, or with rates that are old
// already. Rates that are over before that are marked now, because until then nobody looks.
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
	filled, err := pack(page, tags)
	if len(page.Items) > 0 {
		filled.RatesFreshUntil = until
	}
	return filled, err
}

// decodePage opens a kept page to change it.
func decodePage(e *cache.Entry) (*view.Page, error) {
	body, err := e.Body()
	if err != nil {
		return nil, err
	}
	return view.DecodePage(body, e.Index, slices.Collect(e.TenantIDs()))
}

// logDegraded puts what is missing from a page in the log record of the request that composed it.
func logDegraded(ctx context.Context, page *view.Page) {
	if len(page.Degraded) > 0 {
		web.FromContext(ctx).AddLogField("degraded", page.Degraded)
	}
}

// prepareForResponse is the entry as it may be shown now: without suspended tenants, and with rates marked stale
// whose time is over. An entry that needs neither, which is nearly every one, comes back untouched.
func (f *Finder) prepareForResponse(e *cache.Entry, suspended *tenants.SuspendedSet) (*cache.Entry, error) {
	now := f.now()
	stale := !e.RatesFreshUntil.IsZero() && now.After(e.RatesFreshUntil)
	gone := false
	for owner := range e.TenantIDs() {
		gone = gone || suspended.Has(owner)
	}
	if !stale && !gone {
		return e, nil
	}
	page, err := decodePage(e)
	if err != nil {
		return nil, err
	}
	if gone {
		page.RemoveTenants(suspended.Has)
	}
	page.MarkStale(now)
	filled, err := pack(page, nil)
	return &filled.Entry, err
}

// cacheTags are what empties a page: a change of a tenant on it, or of anything in the area it covers; of a list
// also a change of a hotel on it, which may have moved out of the area. A map has too many for that.
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

const maxCoverCells = 16 // of a page's cover: more would be finer, and each is a command when the page is stored

// coveringCells is the area in cells: our own for what the guest drew, search-aggregation's for a place it knows by
// name.
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

// listMembers are the members of a list behind its cards, for every guest the same.
func listMembers(q upstream.SearchQuery, hash string, found upstream.SearchResult) ([]byte, error) {
	members := []member{
		{"queryHash", hash}, {"page", q.Page}, {"sortKey", q.SortKey}, {"locale", q.Locale}, {"currency", q.Currency},
	}
	return encodeMembers(members, found)
}

// mapMembers is listRest for a map.
func mapMembers(q upstream.SearchQuery, hash string, found upstream.SearchResult) ([]byte, error) {
	return encodeMembers([]member{{"queryHash", hash}, {"locale", q.Locale}, {"currency", q.Currency}}, found)
}

type member struct {
	name  string
	value any
}

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

// distinctTenants lists the tenants of the hits, each once, best ranked first.
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
