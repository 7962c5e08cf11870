package upstream

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"melmastoon.ghasi.io/bff-consumer/shared/geo"
	"melmastoon.ghasi.io/bff-consumer/shared/id"
	"melmastoon.ghasi.io/bff-consumer/shared/locale"
	"melmastoon.ghasi.io/bff-consumer/shared/money"
	"melmastoon.ghasi.io/bff-consumer/shared/stay"
)

const (
	maxHits        = 250 // per page
	maxSimilar     = 4
	maxCoverage    = 32
	maxCoverageRes = 8 // finest resolution of a coverage cell
	maxAmenities   = 20
	maxDistanceKm  = 20_038 // half the equator
	hotelsPath     = "/api/v1/search/hotels/"
)

// Query returns the result of a search: POST, within at most 2,300 ms including the second try. Bad
// and duplicate hits are dropped; Hits is never nil and has at most q.Page.Limit hits, at most 250,
// also for a Limit below 1. Coverage is nil if any cell is unusable. Query does not validate q.
//
// The error is one of the package's rules: an *Error, or an error that wraps context.Canceled;
// never ErrNotFound: a 404 is an *Error of Reason BadResponse, and so is a response without a
// usable hit among its hits. A NaN or invalid UTF-8 in q gives the error of the JSON encoder,
// without a request.
func (s *Search) Query(ctx context.Context, q SearchQuery) (SearchResult, error) {
	reply, err := fetch(ctx, s.c, call{path: "/api/v1/search/queries", body: q}, func(r *searchResponse) error { return r.validate(q.Page) })
	if errors.Is(err, ErrNotFound) { // a query cannot be missing: the responder is not search-aggregation
		err = &Error{Upstream: s.c.name, Reason: BadResponse, Status: http.StatusNotFound}
	}
	if err != nil {
		return SearchResult{}, err
	}
	return SearchResult{
		ResultCount:      *reply.ResultCount,
		Place:            reply.Place,
		Coverage:         parseCoverage(reply.Coverage),
		Hits:             reply.Hits,
		QueryRewriteHint: passthroughJSON(reply.QueryRewriteHint),
		AIProvenance:     passthroughJSON(reply.AIProvenance),
	}, nil
}

// searchResponse is the response body; pointers distinguish a missing value from zero.
type searchResponse struct {
	ResultCount      *int           `json:"resultCount"`
	Place            *Place         `json:"place"`
	Coverage         []string       `json:"coverage"`
	Hits             []Hit          `json:"hits"`
	QueryRewriteHint jsontext.Value `json:"queryRewriteHint"`
	AIProvenance     jsontext.Value `json:"aiProvenance"`
}

// validate checks the mandatory values of r and removes bad hits and bad optional values.
func (r *searchResponse) validate(page Page) error {
	if r.ResultCount == nil || *r.ResultCount < 0 || r.Hits == nil {
		return errInvalidMandatory
	}
	sent := len(r.Hits)
	if r.Hits = validHits(r.Hits, pageLimit(page)); len(r.Hits) == 0 && sent > 0 {
		return fmt.Errorf("none of %d hits is usable", sent)
	}
	if len(r.Hits) > 0 {
		*r.ResultCount = max(*r.ResultCount, page.Offset+len(r.Hits))
	}
	if p := r.Place; p != nil {
		clearInvalid(&p.City, maxName)
		clearInvalid(&p.Region, maxName)
		if !validCountry(p.Country) {
			p.Country = ""
		}
		if *p == (Place{}) {
			r.Place = nil
		}
	}
	return nil
}

// Hotel returns a property with at most 4 similar properties: GET, within at most 2,300 ms
// including the second try. Bad similar properties are dropped. The error is ErrNotFound for a
// property unknown to search-aggregation, or one of the package's rules: an *Error, or an error
// that wraps context.Canceled. Another property than the requested, or a bad mandatory value, is an
// *Error of Reason BadResponse.
func (s *Search) Hotel(ctx context.Context, propertyID string, l locale.Tag, c money.Currency) (Hotel, error) {
	q := call{path: hotelsPath + url.PathEscape(propertyID), query: url.Values{"locale": {string(l)}, "currency": {string(c)}}}
	return fetch(ctx, s.c, q, func(h *Hotel) error {
		if !h.Hit.valid() || h.Hit.PropertyID != propertyID || h.Popularity.BookedLast24h < 0 || h.Popularity.ViewedLast1h < 0 || !h.ReviewSummary.valid() {
			return errInvalidMandatory
		}
		h.Similar = filter(validHits(h.Similar, maxHits), func(o *Hit) bool { return o.PropertyID != propertyID })
		h.Similar = h.Similar[:min(len(h.Similar), maxSimilar)]
		return nil
	})
}

// Availability returns the availability of a property per day: sorted, unique, and inside the
// queried range; other days are dropped. The list may be empty, and is nil only with an error. A
// bad price or number of rooms is cleared. Availability does not validate q. It sends a GET, within
// at most 2,300 ms including the second try. The errors are those of Hotel.
func (s *Search) Availability(ctx context.Context, q AvailabilityQuery) ([]Day, error) {
	type reply struct {
		Days []Day `json:"days"`
	}
	r, err := fetch(ctx, s.c, call{
		path: hotelsPath + url.PathEscape(q.PropertyID) + "/availability",
		query: url.Values{
			"from": {q.From.String()}, "to": {q.To.String()},
			"adults": {strconv.Itoa(q.Adults)}, "children": {strconv.Itoa(q.Children)}, "rooms": {strconv.Itoa(q.Rooms)},
		},
	}, func(r *reply) error {
		if r.Days == nil {
			return errInvalidMandatory
		}
		unique := newUniqueFilter[stay.Date](len(r.Days))
		r.Days = filter(r.Days, func(d *Day) bool {
			if d.RoomsLeft != nil && *d.RoomsLeft < 0 {
				d.RoomsLeft = nil
			}
			if !validPrice(d.CheapestMinor, d.Currency) {
				d.CheapestMinor, d.Currency = "", ""
			}
			return d.Date.Compare(q.From) >= 0 && d.Date.Compare(q.To) <= 0 && unique(d.Date)
		})
		slices.SortFunc(r.Days, func(a, b Day) int { return a.Date.Compare(b.Date) })
		return nil
	})
	return r.Days, err
}

// Facets returns the filters of a country, or of a region of the country; region "" means the whole
// country. Bad filters and bad values are dropped, so a filter may have no values. Facets sends a
// GET, within at most 2,300 ms including the second try. The error is ErrNotFound for a country or
// region without listed properties, or one of the package's rules: an *Error, or an error that
// wraps context.Canceled. The filters of another country are an *Error of Reason BadResponse.
func (s *Search) Facets(ctx context.Context, country, region string, l locale.Tag) (Facets, error) {
	q := call{path: "/api/v1/search/facets", query: url.Values{"country": {country}, "locale": {string(l)}}}
	if region != "" {
		q.query.Set("region", region)
	}
	return fetch(ctx, s.c, q, func(f *Facets) error {
		if f.Country != country || f.Facets == nil {
			return errInvalidMandatory
		}
		clearInvalid(&f.Region, maxName)
		f.Facets = filter(f.Facets, func(g *Facet) bool {
			g.Values = filter(g.Values, func(v *FacetValue) bool {
				return validText(v.Value, maxName) && validText(v.Label, maxName) && v.Count >= 0
			})
			return validCode(g.Key)
		})
		return nil
	})
}

// validHits drops invalid hits and duplicates, and truncates the list to limit.
func validHits(list []Hit, limit int) []Hit {
	unique := newUniqueFilter[string](len(list))
	list = filter(list, func(h *Hit) bool { return h.valid() && unique(h.PropertyID) })
	return list[:min(len(list), limit)]
}

// valid reports whether the mandatory values of h are usable, and removes unusable optional values.
func (h *Hit) valid() bool {
	if !id.Valid(id.Property, h.PropertyID) || !id.Valid(id.Tenant, h.TenantID) || !validSlug(h.TenantSlug) ||
		!h.Name.valid() || !validText(h.City, maxName) || !validCountry(h.Country) ||
		!h.Geo.Valid() || !h.Thumbnail.valid() {
		return false
	}
	if !validStars(h.StarRating) {
		h.StarRating = 0
	}
	if h.GuestRating != nil && !h.GuestRating.valid() {
		h.GuestRating = nil
	}
	if d := h.DistanceKm; d != nil && !(*d >= 0 && *d <= maxDistanceKm) {
		h.DistanceKm = nil
	}
	if !validCode(h.ServingRegion) {
		h.ServingRegion = ""
	}
	h.AmenityHighlights = filter(h.AmenityHighlights, func(a *string) bool { return validCode(*a) })
	h.AmenityHighlights = h.AmenityHighlights[:min(len(h.AmenityHighlights), maxAmenities)]
	h.Badges = filter(h.Badges, func(b *string) bool { return *b == "shariaCompliant" || *b == "newProperty" })
	return true
}

// parseCoverage returns all cells, or nil if any cell is unusable: an entry tagged with only some
// of the cells would miss invalidations.
func parseCoverage(texts []string) []geo.Cell {
	if len(texts) > maxCoverage {
		return nil
	}
	var list []geo.Cell
	for _, text := range texts {
		cell, err := geo.ParseCell(text)
		if err != nil || cell.Res() > maxCoverageRes {
			return nil
		}
		list = append(list, cell)
	}
	return list
}

// pageLimit returns the maximum number of hits of a page.
func pageLimit(p Page) int {
	if p.Limit <= 0 {
		return maxHits
	}
	return min(p.Limit, maxHits)
}
