package search

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
	"unicode"

	"golang.org/x/text/unicode/norm"

	"melmastoon.ghasi.io/bff-consumer/shared/money"
	"melmastoon.ghasi.io/bff-consumer/shared/problem"
	"melmastoon.ghasi.io/bff-consumer/shared/stay"
	"melmastoon.ghasi.io/bff-consumer/shared/web"
)

// The limits of a search. The specification does not name maxPlaceName and maxFilterValues, nor the
// 40 characters of a filter code (isCode). Every value is part of a cache key or goes to an
// upstream, so requests without limits could fill the cache or overload an upstream.
const (
	maxLimit        = 50
	defaultLimit    = 20
	maxOffset       = 1000
	maxPlaceName    = 80 // characters of a place's name
	maxFilterValues = 20 // values of one filter
	maxZoom         = 22
	defaultSortKey  = "recommended"
)

var sortKeys = []string{"recommended", "price-asc", "price-desc", "rating-desc", "distance-asc"}

// query holds the members that list and map requests share.
type query struct {
	Geo       area           `json:"geo"`
	Dates     stay.Dates     `json:"dates"`
	Occupancy stay.Occupancy `json:"occupancy"`
	Filters   filters        `json:"filters"`
	SortKey   string         `json:"sortKey"`
}

// defaultQuery returns a query to decode into. Its occupancy tells absent numbers from zeros.
func defaultQuery() query { return query{Occupancy: stay.UnsetOccupancy()} }

type filters struct {
	PriceRange              *priceRange `json:"priceRange"`
	Amenities               []string    `json:"amenities"`
	StarRating              []int       `json:"starRating"`
	GuestRatingMin          *float64    `json:"guestRatingMin"`
	PropertyType            []string    `json:"propertyType"`
	CancellationFlexibility string      `json:"cancellationFlexibility"`
	Neighbourhoods          []string    `json:"neighbourhoods"`
}

// priceRange bounds the price of a night in minor units. Amounts are decimal strings; whole JSON
// numbers are accepted too, see docs/spec/routes.md#search-query.
type priceRange struct {
	Min      *amount `json:"min"`
	Max      *amount `json:"max"`
	Currency string  `json:"currency"`
}

// check validates the query at the time now, sorts its filters and fills in the default sort key.
// It returns all faults.
func (q *query) check(now time.Time) problem.FieldErrors {
	var f problem.FieldErrors
	q.Geo.check(&f)
	f = append(f, q.Dates.Validate(now)...)
	f = append(f, q.Occupancy.Validate()...)
	q.Filters.check(&f)
	if q.SortKey == "" {
		q.SortKey = defaultSortKey
	}
	if !slices.Contains(sortKeys, q.SortKey) {
		f.Add("sortKey", "not-supported", "Must be one of "+strings.Join(sortKeys, ", ")+".")
	}
	return f
}

// parsePlaceName validates a name that the guest typed and returns it in NFC, trimmed and with
// single spaces. An empty name is valid; a name of spaces alone is not.
func parsePlaceName(f *problem.FieldErrors, field, s string) string {
	if s == "" {
		return ""
	}
	if fault := web.ValidateText(field, s, maxPlaceName); fault != nil {
		*f = append(*f, *fault)
		return s
	}
	s = strings.Join(strings.FieldsFunc(norm.NFC.String(s), unicode.IsSpace), " ")
	if s == "" {
		f.Add(field, "required", "A name is required.")
	}
	return s
}

// check validates the filters and sorts and deduplicates their values in place.
func (v *filters) check(f *problem.FieldErrors) {
	if p := v.PriceRange; p != nil {
		p.check(f)
	}
	v.Amenities = checkCodes(f, "filters.amenities", v.Amenities)
	v.PropertyType = checkCodes(f, "filters.propertyType", v.PropertyType)
	if len(v.StarRating) > maxFilterValues {
		f.Add("filters.starRating", "too-many", "Too many values.")
	}
	for i, stars := range v.StarRating {
		if stars < 1 || stars > 5 {
			f.Add(fmt.Sprintf("filters.starRating.%d", i), "out-of-range", "Must be from 1 to 5.")
		}
	}
	v.StarRating = sortedUnique(v.StarRating)
	if m := v.GuestRatingMin; m != nil && !(*m >= 0 && *m <= 10) {
		f.Add("filters.guestRatingMin", "out-of-range", "Must be from 0 to 10.")
	}
	if c := v.CancellationFlexibility; c != "" && c != "free" && c != "partial" && c != "any" {
		f.Add("filters.cancellationFlexibility", "not-supported", "Must be one of free, partial, any.")
	}
	if len(v.Neighbourhoods) > maxFilterValues {
		f.Add("filters.neighbourhoods", "too-many", "Too many values.")
		return
	}
	for i, s := range v.Neighbourhoods {
		field := fmt.Sprintf("filters.neighbourhoods.%d", i)
		if v.Neighbourhoods[i] = parsePlaceName(f, field, s); s == "" {
			f.Add(field, "required", "A name is required.")
		}
	}
	v.Neighbourhoods = sortedUnique(v.Neighbourhoods)
}

func (p *priceRange) check(f *problem.FieldErrors) {
	if p.Min == nil && p.Max == nil {
		f.Add("filters.priceRange", "required", "A minimum or maximum is required, in minor units.")
	}
	if p.Min != nil && p.Max != nil && p.Min.value.Cmp(p.Max.value) > 0 {
		f.Add("filters.priceRange.max", "reversed", "Must not be below min.")
	}
	if p.Currency == "" {
		f.Add("filters.priceRange.currency", "required", web.CurrencyDetail)
	} else if _, err := money.Parse(p.Currency); err != nil {
		f.Add("filters.priceRange.currency", "not-supported", web.CurrencyDetail)
	}
}

// checkCodes validates codes such as "halal-kitchen" and returns them sorted and without
// duplicates.
func checkCodes(f *problem.FieldErrors, field string, list []string) []string {
	if len(list) > maxFilterValues {
		f.Add(field, "too-many", "Too many values.")
		return list
	}
	for i, s := range list {
		if !isCode(s) {
			f.Add(fmt.Sprintf("%s.%d", field, i), "malformed", "Must be lower-case letters, digits and hyphens, at most 40.")
		}
	}
	return sortedUnique(list)
}

// isCode reports whether s is 1 to 40 lower-case letters, digits and hyphens.
func isCode(s string) bool {
	for _, c := range s {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' {
			return false
		}
	}
	return s != "" && len(s) <= 40
}

func sortedUnique[T int | string](list []T) []T {
	return slices.Compact(slices.Sorted(slices.Values(list)))
}

// round rounds f to a number of decimals, so that nearly equal coordinates share a cache entry.
func round(f float64, decimals int) float64 {
	scale := math.Pow10(decimals)
	return math.Round(f*scale)/scale + 0 // -0 becomes 0, which encodes to the same bytes
}
