package upstream

import (
	"github.com/go-json-experiment/json/jsontext"

	"melmastoon.ghasi.io/bff-consumer/shared/geo"
	"melmastoon.ghasi.io/bff-consumer/shared/locale"
	"melmastoon.ghasi.io/bff-consumer/shared/money"
	"melmastoon.ghasi.io/bff-consumer/shared/stay"
)

// Search is search-aggregation: 1,500 ms a try, a second one after 800 ms of silence or at once after a failure.
type Search struct{ c *client }

// Kind of a search: a list of cards or the pins of a map.
type Kind string

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

// Area is where to search: Mode says which one of the others is set.
type Area struct {
	Mode        string   `json:"mode"` // point, bounding-box, city, region
	Point       *Circle  `json:"point,omitempty"`
	BoundingBox *geo.Box `json:"boundingBox,omitempty"`
	City        string   `json:"city,omitempty"`
	Region      string   `json:"region,omitempty"`
}

// Circle is a point and the distance around it, in kilometres.
type Circle struct {
	Lat      float64 `json:"lat"`
	Lng      float64 `json:"lng"`
	RadiusKm float64 `json:"radiusKm"`
}

// Filters narrow a search; what is unset does not.
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

// Page of results: Limit 1..250 (50 for a list), Offset 0..1000.
type Page struct {
	Limit  int `json:"limit"`
	Offset int `json:"offset"`
}

// SearchResult is what a search found. Hits are unique by property, at most Limit, every value checked: a hit with a
// bad mandatory value was dropped, a bad optional value is absent.
type SearchResult struct {
	ResultCount      int            `json:"resultCount"` // over all pages, never less than what this page shows
	Place            *Place         `json:"place,omitempty"`
	Coverage         []geo.Cell     `json:"-"` // H3 cells that cover the searched area, at most 32, resolution ≤ 8
	Hits             []Hit          `json:"hits"`
	QueryRewriteHint jsontext.Value `json:"queryRewriteHint,omitempty"` // any JSON, up to 8 KiB; nil when absent
	AIProvenance     jsontext.Value `json:"aiProvenance,omitempty"`     // likewise
}

// Place is the canonical name of what the query's city, region or point was resolved to.
type Place struct {
	City    string `json:"city,omitempty"`
	Region  string `json:"region,omitempty"`
	Country string `json:"country,omitempty"` // ISO 3166-1 alpha-2
}

// Hit is one property of a result.
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
	ServingRegion     string    `json:"servingRegion,omitempty"` // cloud region that serves the property
	DistanceKm        *float64  `json:"distanceKm,omitempty"`    // from the point of the query
}

// Localized is a text in its own language and, by BCP-47 tag, in others.
type Localized struct {
	Default   string            `json:"default"`
	Localized map[string]string `json:"localized,omitempty"`
}

// Image is a picture: an https URL and what a guest who cannot see it is told.
type Image struct {
	URL string `json:"url"`
	Alt string `json:"alt"`
}

// Rating is a mean of 0..10 over Count reviews.
type Rating struct {
	Value float64 `json:"value"`
	Count int     `json:"count"`
}

// Hotel is what search-aggregation knows of one property.
type Hotel struct {
	Hit           Hit        `json:"hit"`
	Popularity    Popularity `json:"popularity"`
	ReviewSummary Rating     `json:"reviewSummary"`
	Similar       []Hit      `json:"similar"` // at most 4, checked like hits
}

// Popularity counts people, not visits.
type Popularity struct {
	BookedLast24h int `json:"bookedLast24h"`
	ViewedLast1h  int `json:"viewedLast1h"`
}

// AvailabilityQuery asks for the days From..To, both included, at most 62.
type AvailabilityQuery struct {
	PropertyID string
	From, To   stay.Date
	Adults     int
	Children   int
	Rooms      int
}

// Day is one night's availability; days come sorted, unique, inside what was asked.
type Day struct {
	Date          stay.Date   `json:"date"`
	Available     bool        `json:"available"`
	RoomsLeft     *int        `json:"roomsLeft,omitempty"`
	CheapestMinor money.Minor `json:"cheapestMinor,omitempty"` // set exactly when Currency is
	Currency      string      `json:"currency,omitempty"`      // ISO 4217
}

// Facets are the values one can filter by in a country or region.
type Facets struct {
	Country string  `json:"country"`
	Region  string  `json:"region,omitempty"`
	Facets  []Facet `json:"facets"`
}

// Facet is one filter and its values.
type Facet struct {
	Key    string       `json:"key"`
	Values []FacetValue `json:"values"`
}

// FacetValue is one value of a filter and how many properties have it.
type FacetValue struct {
	Value string `json:"value"`
	Label string `json:"label"` // in the locale asked for
	Count int    `json:"count"`
}
