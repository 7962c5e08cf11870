package search

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
	"unicode"

	"golang.org/x/text/unicode/norm"

	"melmastoon.ghasi.io/bff-consumer/shared/geo"
	"melmastoon.ghasi.io/bff-consumer/shared/money"
	"melmastoon.ghasi.io/bff-consumer/shared/problem"
	"melmastoon.ghasi.io/bff-consumer/shared/stay"
	"melmastoon.ghasi.io/bff-consumer/shared/upstream"
	"melmastoon.ghasi.io/bff-consumer/shared/web"
)

// The limits of a search.
const (
	maxRadiusKm    = 200
	maxBoxDeg2     = 25
	maxLimit       = 50
	defaultLimit   = 20
	maxOffset      = 1000
	maxText        = 80 // characters of a place's name
	maxValues      = 20 // of one filter
	maxZoom        = 22
	defaultSortKey = "recommended"
)

var sortKeys = []string{"recommended", "price-asc", "price-desc", "rating-desc", "distance-asc"}

// query is what list and map ask alike.
type query struct {
	Geo       area           `json:"geo"`
	Dates     stay.Dates     `json:"dates"`
	Occupancy stay.Occupancy `json:"occupancy"`
	Filters   filters        `json:"filters"`
	SortKey   string         `json:"sortKey"`
}

// area is where to search: exactly one of the four, the one that mode names.
type area struct {
	Mode        string           `json:"mode"`
	Point       *upstream.Circle `json:"point"`
	BoundingBox *geo.Box         `json:"boundingBox"`
	City        string           `json:"city"`
	Region      string           `json:"region"`
}

type filters struct {
	PriceRange              *priceRange `json:"priceRange"`
	Amenities               []string    `json:"amenities"`
	StarRating              []int       `json:"starRating"`
	GuestRatingMin          *float64    `json:"guestRatingMin"`
	PropertyType            []string    `json:"propertyType"`
	CancellationFlexibility string      `json:"cancellationFlexibility"`
	Neighbourhoods          []string    `json:"neighbourhoods"`
}

// priceRange is per night in minor units, as decimal strings like every amount; whole numbers are
// taken too, because DOMAIN_MODEL §2.2 writes them so.
type priceRange struct {
	Min      *amount `json:"min"`
	Max      *amount `json:"max"`
	Currency string  `json:"currency"`
}

// faults collects what is wrong with a request.
type faults []problem.Field

func (f *faults) add(field, code, detail string) {
	*f = append(*f, problem.Field{Field: field, Code: code, Detail: detail})
}

// check validates the query for a guest who asks now.
func (q *query) check(now time.Time) faults {
	var f faults
	q.Geo.check(&f)
	f = append(f, q.Dates.Check(now)...)
	f = append(f, q.Occupancy.Check()...)
	q.Filters.check(&f)
	if q.SortKey == "" {
		q.SortKey = defaultSortKey
	}
	if !slices.Contains(sortKeys, q.SortKey) {
		f.add("sortKey", "not-supported", "Must be one of "+strings.Join(sortKeys, ", ")+".")
	}
	return f
}

func (a *area) check(f *faults) {
	given := map[string]bool{
		"point": a.Point != nil, "bounding-box": a.BoundingBox != nil, "city": a.City != "", "region": a.Region != "",
	}
	member := map[string]string{"point": "point", "bounding-box": "boundingBox", "city": "city", "region": "region"}
	if _, known := given[a.Mode]; !known {
		f.add("geo.mode", "not-supported", "Must be one of point, bounding-box, city, region.")
		return
	}
	if !given[a.Mode] {
		f.add("geo."+member[a.Mode], "required", "The mode "+a.Mode+" needs it.")
	}
	for _, mode := range []string{"point", "bounding-box", "city", "region"} {
		if mode != a.Mode && given[mode] {
			f.add("geo."+member[mode], "exactly-one", "Search by exactly one of point, boundingBox, city and region.")
		}
	}
	if p := a.Point; p != nil {
		if !(geo.Point{Lat: p.Lat, Lng: p.Lng}).Valid() {
			f.add("geo.point", "out-of-range", "lat must be from -90 to 90, lng from -180 to 180.")
		}
		if !(p.RadiusKm > 0 && p.RadiusKm <= maxRadiusKm) {
			f.add("geo.point.radiusKm", "out-of-range", fmt.Sprintf("Must be more than 0 and at most %d.", maxRadiusKm))
		}
	}
	if b := a.BoundingBox; b != nil {
		switch {
		case !b.Valid():
			f.add("geo.boundingBox", "out-of-range", "The south-west corner must lie south of the north-east one, the box must have a width, and both must be on the globe.")
		case b.AreaDeg2() > maxBoxDeg2*(1+1e-9): // 65-60 is 5 only nearly everywhere on the globe
			f.add("geo.boundingBox", "too-large", fmt.Sprintf("Must cover at most %d square degrees.", maxBoxDeg2))
		}
	}
	a.City = place(f, "geo.city", a.City)
	a.Region = place(f, "geo.region", a.Region)
}

// place checks a typed name and returns it composed (NFC), trimmed and with single spaces.
func place(f *faults, field, s string) string {
	if s == "" {
		return ""
	}
	if wrong := web.Text(field, s, maxText); wrong != nil {
		*f = append(*f, *wrong)
		return s
	}
	s = strings.Join(strings.FieldsFunc(norm.NFC.String(s), unicode.IsSpace), " ")
	if s == "" {
		f.add(field, "required", "A name is needed.")
	}
	return s
}

func (v *filters) check(f *faults) {
	if p := v.PriceRange; p != nil {
		p.check(f)
	}
	v.Amenities = words(f, "filters.amenities", v.Amenities)
	v.PropertyType = words(f, "filters.propertyType", v.PropertyType)
	if len(v.StarRating) > maxValues {
		f.add("filters.starRating", "too-many", "Too many values.")
	}
	for i, stars := range v.StarRating {
		if stars < 1 || stars > 5 {
			f.add(fmt.Sprintf("filters.starRating.%d", i), "out-of-range", "Must be from 1 to 5.")
		}
	}
	v.StarRating = sorted(v.StarRating)
	if m := v.GuestRatingMin; m != nil && !(*m >= 0 && *m <= 10) {
		f.add("filters.guestRatingMin", "out-of-range", "Must be from 0 to 10.")
	}
	if c := v.CancellationFlexibility; c != "" && c != "free" && c != "partial" && c != "any" {
		f.add("filters.cancellationFlexibility", "not-supported", "Must be one of free, partial, any.")
	}
	if len(v.Neighbourhoods) > maxValues {
		f.add("filters.neighbourhoods", "too-many", "Too many values.")
		return
	}
	for i, s := range v.Neighbourhoods {
		field := fmt.Sprintf("filters.neighbourhoods.%d", i)
		if v.Neighbourhoods[i] = place(f, field, s); s == "" {
			f.add(field, "required", "A name is needed.")
		}
	}
	v.Neighbourhoods = sorted(v.Neighbourhoods)
}

func (p *priceRange) check(f *faults) {
	if p.Min == nil && p.Max == nil {
		f.add("filters.priceRange", "required", "Give min or max, in minor units.")
	}
	if p.Min != nil && p.Max != nil && p.Min.value.Cmp(p.Max.value) > 0 {
		f.add("filters.priceRange.max", "reversed", "Must not be below min.")
	}
	if _, err := money.Parse(p.Currency); err != nil {
		f.add("filters.priceRange.currency", "not-supported", "Must be a currency of this platform.")
	}
}

// words checks codes such as "halal-kitchen" and returns them sorted, each once.
func words(f *faults, field string, list []string) []string {
	if len(list) > maxValues {
		f.add(field, "too-many", "Too many values.")
		return list
	}
	for i, s := range list {
		if !isWord(s) {
			f.add(fmt.Sprintf("%s.%d", field, i), "malformed", "Must be lower-case letters, digits and hyphens, at most 40.")
		}
	}
	return sorted(list)
}

func isWord(s string) bool {
	for _, c := range s {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' {
			return false
		}
	}
	return s != "" && len(s) <= 40
}

func sorted[T int | string](list []T) []T { return slices.Compact(slices.Sorted(slices.Values(list))) }

// round cuts f to so many decimals, so that the same place asked for twice is one cache entry.
func round(f float64, decimals int) float64 {
	scale := math.Pow10(decimals)
	return math.Round(f*scale)/scale + 0 // what is -0 becomes 0: the same place
}
