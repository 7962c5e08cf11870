package sandbox

import (
	"math"
	"net/http"
	"strconv"

	"melmastoon.ghasi.io/bff-consumer/local/dataset"
	"melmastoon.ghasi.io/bff-consumer/shared/geo"
	"melmastoon.ghasi.io/bff-consumer/shared/stay"
)

// query is the body of POST /api/v1/search/queries.
type query struct {
	Kind      string         `json:"kind"`
	Geo       area           `json:"geo"`
	Dates     stay.Dates     `json:"dates"`
	Occupancy stay.Occupancy `json:"occupancy"`
	Filters   *filters       `json:"filters"`
	SortKey   string         `json:"sortKey"`
	Locale    string         `json:"locale"`
	Currency  string         `json:"currency"`
	Page      struct {
		Limit  int `json:"limit"`
		Offset int `json:"offset"`
	} `json:"page"`
}

type area struct {
	Mode  string `json:"mode"`
	Point *struct {
		Lat      float64 `json:"lat"`
		Lng      float64 `json:"lng"`
		RadiusKm float64 `json:"radiusKm"`
	} `json:"point"`
	Box    *geo.Box `json:"boundingBox"`
	City   *string  `json:"city"`
	Region *string  `json:"region"`
}

type filters struct {
	PriceRange *struct {
		MinMinor *string `json:"minMinor"`
		MaxMinor *string `json:"maxMinor"`
		Currency string  `json:"currency"`
	} `json:"priceRange"`
	Amenities      []string `json:"amenities"`
	Stars          []int    `json:"starRating"`
	RatingMin      float64  `json:"guestRatingMin"`
	Kinds          []string `json:"propertyType"`
	Cancellation   string   `json:"cancellationFlexibility"`
	Neighbourhoods []string `json:"neighbourhoods"`
}

type result struct {
	ResultCount      int          `json:"resultCount"`
	Place            *place       `json:"place,omitzero"`
	Coverage         []string     `json:"coverage,omitzero"`
	Hits             []hit        `json:"hits"`
	QueryRewriteHint *rewriteHint `json:"queryRewriteHint,omitzero"`
	AIProvenance     *provenance  `json:"aiProvenance,omitzero"`
}

type place struct {
	City    string `json:"city,omitzero"`
	Region  string `json:"region,omitzero"`
	Country string `json:"country,omitzero"`
}

// rewriteHint reports that the search used another spelling of the name.
type rewriteHint struct {
	Kind string `json:"kind"` // spelling
	Used string `json:"used"`
}

// provenance is the source of a rewriteHint. The sandbox uses no model; it sends the field so that
// tests can check that consumers pass it through.
type provenance struct {
	Producer string `json:"producer"`
	Model    string `json:"model"`
	Purpose  string `json:"purpose"`
}

type hit struct {
	PropertyID    string    `json:"propertyId"`
	TenantID      string    `json:"tenantId"`
	TenantSlug    string    `json:"tenantSlug"`
	Name          localized `json:"name"`
	City          string    `json:"city"`
	Country       string    `json:"country"`
	Geo           geo.Point `json:"geo"`
	Thumbnail     image     `json:"thumbnail"`
	Stars         int       `json:"starRating,omitzero"`
	Rating        *rating   `json:"guestRating,omitzero"`
	Amenities     []string  `json:"amenityHighlights"`
	Badges        []string  `json:"badges,omitzero"`
	ServingRegion string    `json:"servingRegion"`
	DistanceKm    *float64  `json:"distanceKm,omitzero"`
}

type localized struct {
	Default   string            `json:"default"`
	Localized map[string]string `json:"localized,omitzero"`
}

type image struct {
	URL string `json:"url"`
	Alt string `json:"alt"`
}

type rating struct {
	Value float64 `json:"value"`
	Count int     `json:"count"`
}

const (
	maxPage   = 250
	maxOffset = 1000
	maxRadius = 500 // km
)

func (s *Sandbox) searchRoutes() http.Handler {
	mux := newMux()
	route(mux, "POST /api/v1/search/queries", s.query)
	route(mux, "GET /api/v1/search/hotels/{id}", s.hotel)
	route(mux, "GET /api/v1/search/hotels/{id}/availability", s.availability)
	route(mux, "GET /api/v1/search/facets", s.listFacets)
	return mux
}

// query responds with a page of properties that match the query and have rooms, with the total
// count.
func (s *Sandbox) query(r *http.Request) (any, error) {
	var q query
	if err := readJSON(r, &q); err != nil {
		return nil, err
	}
	if err := q.validate(); err != nil {
		return nil, err
	}
	where := s.resolveArea(q.Geo)
	found := q.filter(where.properties)
	if q.SortKey == "distance-asc" {
		sortByDistance(found, where.center)
	} else {
		sortProperties(found, q.SortKey)
	}
	res := result{
		ResultCount: len(found),
		Place:       where.place,
		Coverage:    where.coverage,
		Hits:        []hit{},
	}
	if where.correctedName != "" {
		res.QueryRewriteHint = &rewriteHint{"spelling", where.correctedName}
		res.AIProvenance = &provenance{"search-sandbox", "none", "query-rewrite"}
	}
	from := min(q.Page.Offset, len(found))
	for _, p := range found[from:min(from+q.Page.Limit, len(found))] {
		h := newHit(p, q.Locale)
		if q.Geo.Point != nil {
			away := math.Round(geo.DistanceKm(where.center, p.Row.Point)*100) / 100
			h.DistanceKm = &away
		}
		res.Hits = append(res.Hits, h)
	}
	return res, nil
}

// validate returns an apiError if the query breaks the contract.
func (q *query) validate() error {
	switch {
	case q.Kind != "list" && q.Kind != "map":
		return badRequest("kind must be list or map")
	case !isValidStay(q.Dates):
		return badRequest("dates must be one to %d nights", stay.MaxNights)
	case len(q.Occupancy.Validate()) > 0:
		return badRequest("occupancy is out of range")
	case q.Page.Limit < 1 || q.Page.Limit > maxPage || q.Page.Offset < 0 || q.Page.Offset > maxOffset:
		return badRequest("page is out of range")
	case q.Locale == "":
		return badRequest("locale is missing")
	case q.Currency == "":
		return badRequest("currency is missing")
	}
	switch q.SortKey {
	case "recommended", "price-asc", "price-desc", "rating-desc", "distance-asc":
	default:
		return badRequest("sortKey %q is unknown", q.SortKey)
	}
	if err := q.Geo.validate(); err != nil {
		return err
	}
	return q.Filters.validate()
}

// isValidStay reports whether the dates are a stay of 1 to stay.MaxNights nights. It accepts dates
// in the past, because responses must not depend on the current day; the caller checks the current
// day.
func isValidStay(d stay.Dates) bool {
	return !d.CheckIn.IsZero() && !d.CheckOut.IsZero() && d.Nights() >= 1 && d.Nights() <= stay.MaxNights
}

// validate requires exactly the member that mode names, within its range.
func (a *area) validate() error {
	given := map[string]bool{"point": a.Point != nil, "bounding-box": a.Box != nil, "city": a.City != nil, "region": a.Region != nil}
	if !given[a.Mode] {
		return badRequest("geo lacks the member of mode %q", a.Mode)
	}
	for mode, is := range given {
		if is && mode != a.Mode {
			return badRequest("geo has %s in mode %s", mode, a.Mode)
		}
	}
	switch {
	case a.Point != nil && (!(geo.Point{Lat: a.Point.Lat, Lng: a.Point.Lng}).Valid() || !(a.Point.RadiusKm > 0 && a.Point.RadiusKm <= maxRadius)):
		return badRequest("geo.point is out of range")
	case a.Box != nil && !a.Box.Valid():
		return badRequest("geo.boundingBox is out of range")
	case a.City != nil && *a.City == "", a.Region != nil && *a.Region == "":
		return badRequest("geo.%s is empty", a.Mode)
	}
	return nil
}

func (f *filters) validate() error {
	if f == nil {
		return nil
	}
	if r := f.PriceRange; r != nil {
		if _, ok := exchangeRates[r.Currency]; !ok {
			return badRequest("filters.priceRange.currency %q has no exchange rate in the sandbox", r.Currency)
		}
		for _, amount := range []*string{r.MinMinor, r.MaxMinor} {
			if amount == nil {
				continue
			}
			if _, err := strconv.ParseUint(*amount, 10, 63); err != nil {
				return badRequest("filters.priceRange must be in minor units")
			}
		}
	}
	switch f.Cancellation {
	case "", "free", "partial", "any":
	default:
		return badRequest("filters.cancellationFlexibility %q is unknown", f.Cancellation)
	}
	if f.RatingMin < 0 || f.RatingMin > 10 {
		return badRequest("filters.guestRatingMin is out of range")
	}
	return nil
}

// newHit returns a property in the form of a search hit.
func newHit(p *dataset.Property, locale string) hit {
	name := propertyName(p, locale)
	h := hit{
		PropertyID: p.ID, TenantID: p.Tenant.ID, TenantSlug: p.Tenant.Slug,
		Name: newLocalized(p.Row.Name, p.Row.Names, locale),
		City: p.CityName, Country: p.Country, Geo: p.Row.Point,
		Thumbnail:     image{photoURL(p, "hero"), photoAlt(name, locale)},
		Stars:         p.Stars,
		Amenities:     p.Amenities[:min(len(p.Amenities), 5)],
		Badges:        p.Badges,
		ServingRegion: p.ServingRegion,
	}
	if p.Rating > 0 {
		h.Rating = &rating{float64(p.Rating) / 10, p.Reviews}
	}
	return h
}

func photoURL(p *dataset.Property, name string) string {
	return dataset.MediaHost + "/properties/" + p.ID + "/" + name + ".jpg"
}
