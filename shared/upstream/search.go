package upstream

import (
	"github.com/go-json-experiment/json/jsontext"

	"melmastoon.ghasi.io/bff-consumer/shared/geo"
	"melmastoon.ghasi.io/bff-consumer/shared/locale"
	"melmastoon.ghasi.io/bff-consumer/shared/money"
	"melmastoon.ghasi.io/bff-consumer/shared/stay"
)

// Search is the client of search-aggregation: 1,500 ms per try; the second try starts 800 ms after
// the first without a response, or at once after a temporary failure. So a call takes at most 2,300
// ms. Safe for concurrent use.
type Search struct{ c *client }

// Kind is the kind of a search: a list of cards, or the pins of a map.
type Kind string

// The kinds of a search.
const (
	List Kind = "list"
	Map  Kind = "map"
)

// SearchQuery is the body of POST /api/v1/search/queries.
type SearchQuery struct {
	Kind      Kind           `json:"kind"`
	Geo       Area           `json:"geo"`
	Dates     stay.Dates     `json:"dates"`
	Occupancy stay.Occupancy `json:"occupancy"`
	Filters   *Filters       `json:"filters,omitempty"`
	SortKey   string         `json:"sortKey"` // recommended, price-asc, price-desc, rating-desc, distance-asc
	Locale    locale.Tag     `json:"locale"`
	Currency  money.Currency `json:"currency"`
	Page      Page           `json:"page"`
}

// Area is the searched area. Mode tells which other field is set.
type Area struct {
	Mode        string   `json:"mode"` // point, bounding-box, city, region
	Point       *Circle  `json:"point,omitempty"`
	BoundingBox *geo.Box `json:"boundingBox,omitempty"`
	City        string   `json:"city,omitempty"`
	Region      string   `json:"region,omitempty"`
}

// Circle is a point with a radius.
type Circle struct {
	Lat      float64 `json:"lat"`
	Lng      float64 `json:"lng"`
	RadiusKm float64 `json:"radiusKm"`
}

// Filters narrow a search. Unset fields have no effect.
type Filters struct {
	PriceRange              *PriceRange `json:"priceRange,omitempty"`
	Amenities               []string    `json:"amenities,omitempty"`
	StarRating              []int       `json:"starRating,omitempty"`
	GuestRatingMin          *float64    `json:"guestRatingMin,omitempty"`
	PropertyType            []string    `json:"propertyType,omitempty"`
	CancellationFlexibility string      `json:"cancellationFlexibility,omitempty"` // free, partial, any
	Neighbourhoods          []string    `json:"neighbourhoods,omitempty"`
}

// PriceRange is per night, in minor units of Currency, both ends included.
type PriceRange struct {
	MinMinor money.Minor    `json:"minMinor,omitempty"`
	MaxMinor money.Minor    `json:"maxMinor,omitempty"`
	Currency money.Currency `json:"currency"`
}

// Page selects results: Limit 1..250 (50 for a list), Offset 0..1000.
type Page struct {
	Limit  int `json:"limit"`
	Offset int `json:"offset"`
}

// SearchResult is the result of a search. Hits are unique by property and at most Limit. All values
// are checked: a hit with a bad mandatory value is dropped, a bad optional value is absent.
type SearchResult struct {
	ResultCount int    `json:"resultCount"` // over all pages, at least the hits up to this page
	Place       *Place `json:"place,omitempty"`
	// H3 cells covering the searched area, at most 32, resolution ≤ 8
	Coverage []geo.Cell `json:"-"`
	Hits     []Hit      `json:"hits"`
	// any JSON, up to 8 KiB; nil when absent
	QueryRewriteHint jsontext.Value `json:"queryRewriteHint,omitempty"`
	AIProvenance     jsontext.Value `json:"aiProvenance,omitempty"` // likewise
}

// Place is the canonical name of the city, region or point of the query.
type Place struct {
	City    string `json:"city,omitempty"`
	Region  string `json:"region,omitempty"`
	Country string `json:"country,omitempty"` // ISO 3166-1 alpha-2
}

// Hit is a property in a search result.
type Hit struct {
	PropertyID        string    `json:"propertyId"` // ppt_<ulid>
	TenantID          string    `json:"tenantId"`   // tnt_<ulid>
	TenantSlug        string    `json:"tenantSlug"` // a DNS label
	Name              Localized `json:"name"`
	City              string    `json:"city"`
	Country           string    `json:"country"` // ISO 3166-1 alpha-2
	Geo               geo.Point `json:"geo"`
	Thumbnail         Image     `json:"thumbnail"`
	StarRating        float64   `json:"starRating,omitzero"` // 0: not rated, else up to 5
	GuestRating       *Rating   `json:"guestRating,omitempty"`
	AmenityHighlights []string  `json:"amenityHighlights"`
	Badges            []string  `json:"badges,omitempty"`        // shariaCompliant, newProperty
	ServingRegion     string    `json:"servingRegion,omitempty"` // cloud region for the property's traffic
	DistanceKm        *float64  `json:"distanceKm,omitempty"`    // from the point of the query
}

// Localized is a text in the default language and, by BCP-47 tag, in translations.
type Localized struct {
	Default   string            `json:"default"`
	Localized map[string]string `json:"localized,omitempty"`
}

// Image is a picture: an https URL and an alternative text.
type Image struct {
	URL string `json:"url"`
	Alt string `json:"alt"`
}

// Rating is the mean, 0..10, of Count reviews.
type Rating struct {
	Value float64 `json:"value"`
	Count int     `json:"count"`
}

// Hotel is search-aggregation's record of a property.
type Hotel struct {
	Hit           Hit        `json:"hit"`
	Popularity    Popularity `json:"popularity"`
	ReviewSummary Rating     `json:"reviewSummary"`
	Similar       []Hit      `json:"similar"` // at most 4, checked like hits
}

// Popularity counts people, not page views.
type Popularity struct {
	BookedLast24h int `json:"bookedLast24h"`
	ViewedLast1h  int `json:"viewedLast1h"`
}

// AvailabilityQuery is a query for the days From to To, inclusive, at most 62.
type AvailabilityQuery struct {
	PropertyID string
	From, To   stay.Date
	Adults     int
	Children   int
	Rooms      int
}

// Day is the availability of a night.
type Day struct {
	Date          stay.Date   `json:"date"`
	Available     bool        `json:"available"`
	RoomsLeft     *int        `json:"roomsLeft,omitempty"`
	CheapestMinor money.Minor `json:"cheapestMinor,omitempty"` // set if and only if Currency is set
	Currency      string      `json:"currency,omitempty"`      // ISO 4217
}

// Facets are the filters of a country or region with all values.
type Facets struct {
	Country string  `json:"country"`
	Region  string  `json:"region,omitempty"`
	Facets  []Facet `json:"facets"`
}

// Facet is a filter with all values.
type Facet struct {
	Key    string       `json:"key"`
	Values []FacetValue `json:"values"`
}

// FacetValue is a value of a filter and the number of matching properties.
type FacetValue struct {
	Value string `json:"value"`
	Label string `json:"label"` // in the requested locale
	Count int    `json:"count"`
}
