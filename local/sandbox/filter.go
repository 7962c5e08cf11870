package sandbox

import (
	"cmp"
	"slices"
	"strconv"

	"melmastoon.ghasi.io/bff-consumer/local/dataset"
	"melmastoon.ghasi.io/bff-consumer/shared/geo"
)

// filter keeps the properties with rooms for the stay that match the filters. It reuses the slice.
func (q *query) filter(candidates []*dataset.Property) []*dataset.Property {
	keep := q.Filters.predicate(q)
	return slices.DeleteFunc(candidates, func(p *dataset.Property) bool {
		return !keep(p) || !isAvailable(p, q.Dates, q.Occupancy.Rooms)
	})
}

// predicate returns a function that reports whether a property matches all filters. A property
// needs all amenities, but only one value of each other filter.
func (f *filters) predicate(q *query) func(*dataset.Property) bool {
	if f == nil {
		return func(*dataset.Property) bool { return true }
	}
	districts := make([]string, len(f.Neighbourhoods))
	for i, name := range f.Neighbourhoods {
		districts[i] = dataset.Fold(name)
	}
	affordable := f.pricePredicate(q)
	return func(p *dataset.Property) bool {
		for _, code := range f.Amenities {
			if !slices.Contains(p.Amenities, code) {
				return false
			}
		}
		return (len(f.Stars) == 0 || slices.Contains(f.Stars, p.Stars)) &&
			float64(p.Rating) >= f.RatingMin*10 &&
			(len(f.Kinds) == 0 || slices.Contains(f.Kinds, p.Row.Kind)) &&
			matchesCancellation(p, f.Cancellation) &&
			(len(districts) == 0 || slices.Contains(districts, dataset.Fold(p.District))) &&
			affordable(p)
	}
}

func matchesCancellation(p *dataset.Property, wanted string) bool {
	switch wanted {
	case "free":
		return p.Cancellation == "free"
	case "partial": // includes free cancellation
		return p.Cancellation != "none"
	}
	return true
}

// pricePredicate compares the cheapest night of the stay with the range, in the range's currency.
func (f *filters) pricePredicate(q *query) func(*dataset.Property) bool {
	if f.PriceRange == nil {
		return func(*dataset.Property) bool { return true }
	}
	low, high := uint64(0), uint64(1<<63)
	if text := f.PriceRange.MinMinor; text != nil {
		low, _ = strconv.ParseUint(*text, 10, 63) // validate has checked the text
	}
	if text := f.PriceRange.MaxMinor; text != nil {
		high, _ = strconv.ParseUint(*text, 10, 63)
	}
	t := newTariff(q.Dates, q.Occupancy, exchangeRates[f.PriceRange.Currency])
	return func(p *dataset.Property) bool {
		night := t.cheapest(p)
		return low <= night && night <= high
	}
}

// sortProperties sorts by a key other than distance. Ties are in the order of ids, so pages are
// consistent.
func sortProperties(found []*dataset.Property, key string) {
	by := map[string]func(a, b *dataset.Property) int{
		"recommended": func(a, b *dataset.Property) int { return cmp.Compare(b.Recommended, a.Recommended) },
		"price-asc":   func(a, b *dataset.Property) int { return cmp.Compare(a.NightMicroUSD, b.NightMicroUSD) },
		"price-desc":  func(a, b *dataset.Property) int { return cmp.Compare(b.NightMicroUSD, a.NightMicroUSD) },
		"rating-desc": func(a, b *dataset.Property) int {
			return cmp.Or(cmp.Compare(b.Rating, a.Rating), cmp.Compare(b.Reviews, a.Reviews))
		},
	}[key]
	slices.SortFunc(found, func(a, b *dataset.Property) int { return cmp.Or(by(a, b), cmp.Compare(a.ID, b.ID)) })
}

// sortByDistance sorts by the distance from a point, then by id.
func sortByDistance(found []*dataset.Property, from geo.Point) {
	type away struct {
		*dataset.Property
		km float64
	}
	list := make([]away, len(found))
	for i, p := range found {
		list[i] = away{p, geo.DistanceKm(from, p.Row.Point)}
	}
	slices.SortFunc(list, func(a, b away) int { return cmp.Or(cmp.Compare(a.km, b.km), cmp.Compare(a.ID, b.ID)) })
	for i, a := range list {
		found[i] = a.Property
	}
}
