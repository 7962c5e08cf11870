package search

import (
	"crypto/sha256"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"

	"melmastoon.ghasi.io/bff-consumer/shared/digest"
	"melmastoon.ghasi.io/bff-consumer/shared/event"
	"melmastoon.ghasi.io/bff-consumer/shared/geo"
	"melmastoon.ghasi.io/bff-consumer/shared/locale"
	"melmastoon.ghasi.io/bff-consumer/shared/money"
	"melmastoon.ghasi.io/bff-consumer/shared/upstream"
)

// normalize returns the query in its normal form: sorted, rounded, with defaults filled in. Queries
// with the same meaning have the same normal form, and so share a cache entry. The normal form is
// sent to search-aggregation. It needs a query that check accepted.
func (q *query) normalize(kind upstream.Kind, zoom *int, page upstream.Page) upstream.SearchQuery {
	n := upstream.SearchQuery{
		Kind: kind, Dates: q.Dates, Occupancy: q.Occupancy, SortKey: q.SortKey, Page: page,
		Geo:     upstream.Area{Mode: q.Geo.Mode, City: q.Geo.City, Region: q.Geo.Region},
		Filters: q.Filters.normalize(),
	}
	n.Occupancy.ChildrenAges = slices.Sorted(slices.Values(q.Occupancy.ChildrenAges))
	if p := q.Geo.Point; p != nil {
		circle := p.value()
		n.Geo.Point = &upstream.Circle{Lat: round(circle.Lat, 3), Lng: round(circle.Lng, 3), RadiusKm: max(round(circle.RadiusKm, 1), 0.1)}
	}
	if b := q.Geo.BoundingBox; b != nil {
		box := snapToGrid(b.value(), gridStep(zoom))
		n.Geo.BoundingBox = &box
	}
	return n
}

// normalize returns the filters for search-aggregation, or nil when no filter is set. The value
// "any" of cancellationFlexibility is no filter.
func (v *filters) normalize() *upstream.Filters {
	n := upstream.Filters{
		Amenities: v.Amenities, StarRating: v.StarRating, GuestRatingMin: v.GuestRatingMin,
		PropertyType: v.PropertyType, Neighbourhoods: v.Neighbourhoods,
	}
	if v.CancellationFlexibility != "any" {
		n.CancellationFlexibility = v.CancellationFlexibility
	}
	if p := v.PriceRange; p != nil {
		n.PriceRange = &upstream.PriceRange{Currency: money.Currency(p.Currency)}
		if p.Min != nil {
			n.PriceRange.MinMinor = p.Min.value
		}
		if p.Max != nil {
			n.PriceRange.MaxMinor = p.Max.value
		}
	}
	if len(n.Amenities)+len(n.StarRating)+len(n.PropertyType)+len(n.Neighbourhoods) == 0 &&
		n.GuestRatingMin == nil && n.CancellationFlexibility == "" && n.PriceRange == nil {
		return nil
	}
	return &n
}

// telemetryKeys returns the names of the filters of a query and its amenity codes, without values
// that the guest typed.
func (v *filters) telemetryKeys() event.Filters {
	var names []string
	for name, set := range map[string]bool{
		"priceRange": v.PriceRange != nil, "starRating": len(v.StarRating) > 0, "guestRatingMin": v.GuestRatingMin != nil,
		"propertyType": len(v.PropertyType) > 0, "neighbourhoods": len(v.Neighbourhoods) > 0,
		"cancellationFlexibility": v.CancellationFlexibility != "" && v.CancellationFlexibility != "any",
	} {
		if set {
			names = append(names, name)
		}
	}
	return event.FilterKeys(v.Amenities, names...)
}

// gridStep returns the step, in degrees, of the grid that boxes snap to: 16 pixels of a map at the
// zoom, at most 0.25, so that a small pan finds the same cache entry. Without a zoom it is 0.001,
// the precision of points.
func gridStep(zoom *int) float64 {
	if zoom == nil {
		return 0.001
	}
	return min(360/math.Exp2(float64(*zoom))/16, 0.25)
}

// snapToGrid grows a box outwards to the grid, within the globe. The result covers the box, except
// for an edge within 1e-9 of a step of a grid line, which snaps to that line.
func snapToGrid(b geo.Box, step float64) geo.Box {
	const noise = 1e-9 // tolerates the rounding error of a division: an edge on the grid stays there
	down := func(f, low float64) float64 { return max(round(math.Floor(f/step+noise)*step, 9), low) }
	up := func(f, high float64) float64 { return min(round(math.Ceil(f/step-noise)*step, 9), high) }
	s := geo.Box{SwLat: down(b.SwLat, -90), SwLng: down(b.SwLng, -180), NeLat: up(b.NeLat, 90), NeLng: up(b.NeLng, 180)}
	// Both edges of a box smaller than the noise snap to one grid line. The box grows by a step
	// each way.
	if s.NeLat <= s.SwLat {
		s.SwLat, s.NeLat = down(s.SwLat-step, -90), up(s.NeLat+step, 90)
	}
	if s.NeLng == s.SwLng {
		s.SwLng, s.NeLng = down(s.SwLng-step, -180), up(s.NeLng+step, 180)
	}
	return s
}

// queryHash returns "sha256:<hex>" over the normal form with locale and currency and without the
// page. Names of places are lower-cased first.
func queryHash(n upstream.SearchQuery, l locale.Tag, c money.Currency) string {
	n.Locale, n.Currency, n.Page = l, c, upstream.Page{}
	n.Geo.City, n.Geo.Region = strings.ToLower(n.Geo.City), strings.ToLower(n.Geo.Region)
	b, err := json.Marshal(n)
	if err != nil {
		panic(err) // unreachable: every part was decoded from JSON
	}
	sum := sha256.Sum256(b)
	return digest.Format(sum[:])
}

// pageKey returns the cache key of one page of a list. Limit and offset are part of the key but not
// of the query hash: analytics groups searches by the hash, a search session is found by the hash,
// and the second page of a search belongs to the same query.
func (f *Finder) pageKey(hash string, p upstream.Page) string {
	return f.keys.Key("cache", "search", "list", digest.Hex(hash), strconv.Itoa(p.Limit), strconv.Itoa(p.Offset))
}

// mapKey returns the cache key of the pins of a map. It does not depend on the spotlighted pin.
func (f *Finder) mapKey(hash string) string {
	return f.keys.Key("cache", "search", "map", digest.Hex(hash))
}

// spotlightKey returns the cache key of the rate of one pin for the stay of the map's query.
func (f *Finder) spotlightKey(hash, property string) string {
	return f.keys.Key("cache", "search", "spotlight", digest.Hex(hash), property)
}
