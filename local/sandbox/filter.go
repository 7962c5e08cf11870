package sandbox

import (
	"cmp"
	"slices"
	"strconv"

	"melmastoon.ghasi.io/bff-consumer/local/dataset"
	"melmastoon.ghasi.io/bff-consumer/shared/geo"
)

// filter keeps the properties that have rooms for the stay and pass the filters. It works in place.
func (q *query) filter(candidates []*dataset.Property) []*dataset.Property {
	keep := q.Filters.predicate(q)
	return slices.DeleteFunc(candidates, func(p *dataset.Property) bool {
		return !keep(p) || !isAvailable(p, q.Dates, q.Occupancy.Rooms)
	})
}

// predicate is the filters as one question. Within a filter one value is enough, except that all amenities are wanted.
func (f *filters) predicate(q *query) func(*dataset.Property) bool {
	if f == nil {
		return func(*dataset.Property) bool { return true }
	}
	quarters := make([]string, len(f.Neighbourhoods))
	for i, name := range f.Neighbourhoods {
		quarters[i] = dataset.Fold(name)
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
			(len(quarters) == 0 || slices.Contains(quarters, dataset.Fold(p.District))) &&
			affordable(p)
	}
}

func matchesCancellation(p *dataset.Property, wanted string) bool {
	switch wanted {
	case "free":
		return p.Cancellation == "free"
	case "partial": // or better
		return p.Cancellation != "none"
	}
	return true
}

// pricePredicate compares the cheapest night of the stay, in the range's own currency.
func (f *filters) pricePredicate(q *query) func(*dataset.Property) bool {
	if f.PriceRange == nil {
		return func(*dataset.Property) bool { return true }
	}
	low, high := uint64(0), uint64(1<<63)
	if text := f.PriceRange.MinMinor; text != nil {
		low, _ = strconv.ParseUint(*text, 10, 63) // checked before
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

// sortProperties sorts by anything but distance. Equals are in the order of their ids, so that pages fit together.
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
