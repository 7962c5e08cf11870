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

// normalize is a query in its one form: sorted, rounded, defaults filled in. Queries that mean the same
// have the same normal form and so share a cache entry. It is what search-aggregation is asked.
func (q *query) normalize(kind upstream.Kind, zoom *int, page upstream.Page) upstream.SearchQuery {
	n := upstream.SearchQuery{
		Kind: kind, Dates: q.Dates, Occupancy: q.Occupancy, SortKey: q.SortKey, Page: page,
		Geo:     upstream.Area{Mode: q.Geo.Mode, City: q.Geo.City, Region: q.Geo.Region},
		Filters: q.Filters.normalize(),
	}
	n.Occupancy.ChildrenAges = slices.Sorted(slices.Values(q.Occupancy.ChildrenAges))
	if p := q.Geo.Point; p != nil {
		said := p.value()
		n.Geo.Point = &upstream.Circle{Lat: round(said.Lat, 3), Lng: round(said.Lng, 3), RadiusKm: max(round(said.RadiusKm, 1), 0.1)}
	}
	if b := q.Geo.BoundingBox; b != nil {
		box := snapToGrid(b.value(), gridStep(zoom))
		n.Geo.BoundingBox = &box
	}
	return n
}

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

// telemetryKeys reports the filters of a query for telemetry, without what was typed.
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

// gridStep is the grid that boxes snap to, in degrees: 16 pixels of a map at that zoom, so that a small
// pan finds the same entry; without a zoom three decimals, as for points.
func gridStep(zoom *int) float64 {
	if zoom == nil {
		return 0.001
	}
	return min(360/math.Exp2(float64(*zoom))/16, 0.25)
}

// snapToGrid grows a box outwards to the grid, within the globe: what was asked for is always covered.
func snapToGrid(b geo.Box, step float64) geo.Box {
	const noise = 1e-9 // of a division: an edge on the grid stays there
	down := func(f, low float64) float64 { return max(round(math.Floor(f/step+noise)*step, 9), low) }
	up := func(f, high float64) float64 { return min(round(math.Ceil(f/step-noise)*step, 9), high) }
	s := geo.Box{SwLat: down(b.SwLat, -90), SwLng: down(b.SwLng, -180), NeLat: up(b.NeLat, 90), NeLng: up(b.NeLng, 180)}
	// A box smaller than the noise lies on one line of the grid; it gets the cell beside it.
	if s.NeLat <= s.SwLat {
		s.SwLat, s.NeLat = down(s.SwLat-step, -90), up(s.NeLat+step, 90)
	}
	if s.NeLng == s.SwLng {
		s.SwLng, s.NeLng = down(s.SwLng-step, -180), up(s.NeLng+step, 180)
	}
	return s
}

// queryHash is the query hash: SHA-256 over the normal form with locale and currency and without the page,
// "sha256:<hex>". Names of places are compared without regard to case.
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

// pageKey is the cache key of one page of a list. Limit and offset are part of the key and not of the
// query hash: analytics groups searches by the hash, a search session is found by the hash, and the
// second page of a search is the same query.
func (f *Finder) pageKey(hash string, p upstream.Page) string {
	return f.keys.Key("cache", "search", "list", digest.Hex(hash), strconv.Itoa(p.Limit), strconv.Itoa(p.Offset))
}

// mapKey is the cache key of a map's pins, whichever of them is in the spotlight.
func (f *Finder) mapKey(hash string) string {
	return f.keys.Key("cache", "search", "map", digest.Hex(hash))
}

// spotlightKey is the cache key of one pin's rate for the stay the map is about.
func (f *Finder) spotlightKey(hash, property string) string {
	return f.keys.Key("cache", "search", "spotlight", digest.Hex(hash), property)
}
