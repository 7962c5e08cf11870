package sandbox

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strconv"

	"melmastoon.ghasi.io/bff-consumer/local/dataset"
)

// facetKey is a country, or a region or city of a country.
type facetKey struct{ country, part string }

// facetCounts lists the values of each filter with their number of properties.
type facetCounts map[string][]valueCount

type valueCount struct {
	value string
	count int
}

// maxValues limits long lists, such as the districts of a country.
const maxValues = 30

type facet struct {
	Key    string       `json:"key"`
	Values []facetValue `json:"values"`
}

type facetValue struct {
	Value string `json:"value"`
	Label string `json:"label"`
	Count int    `json:"count"`
}

// facetKeys lists the facets in display order, with the names of the search's filters.
var facetKeys = []string{"propertyType", "starRating", "guestRatingMin", "amenities", "cancellationFlexibility", "neighbourhoods"}

// listFacets responds with the facets of a country, region or city.
func (s *Sandbox) listFacets(r *http.Request) (any, error) {
	q := r.URL.Query()
	locale := q.Get("locale")
	if locale == "" {
		return nil, badRequest("locale is missing")
	}
	country := s.data.Country(q.Get("country"))
	if country == nil {
		return nil, notFound
	}
	key := facetKey{country: country.Code}
	if region := q.Get("region"); region != "" {
		name, _, ok := s.data.RegionOf(country.Code, region)
		if !ok {
			return nil, notFound
		}
		key.part = name
	}
	answer := struct {
		Country string  `json:"country"`
		Region  string  `json:"region,omitzero"`
		Facets  []facet `json:"facets"`
	}{Country: country.Code, Region: key.part, Facets: []facet{}}
	counts := s.facets[key]
	for _, name := range facetKeys {
		f := facet{Key: name, Values: []facetValue{}}
		for _, c := range counts[name] {
			f.Values = append(f.Values, facetValue{c.value, facetLabel(name, c.value, locale), c.count})
		}
		answer.Facets = append(answer.Facets, f)
	}
	return answer, nil
}

// facetLabel returns the text of a facet's value in a locale's language.
func facetLabel(key, value, locale string) string {
	switch key {
	case "propertyType":
		return labels.PropertyType[value].textOr(locale, value)
	case "amenities":
		return labels.Amenities[value].Label.textOr(locale, value)
	case "cancellationFlexibility":
		return labels.Cancellation[value].textOr(locale, value)
	case "neighbourhoods":
		return labels.Quarters[value].textOr(locale, value)
	case "starRating":
		n, _ := strconv.Atoi(value)
		return fmt.Sprintf(labels.Stars.text(locale), n)
	default:
		return fmt.Sprintf(labels.RatingFrom.text(locale), value)
	}
}

// countAllFacets counts the facets of every country, region and city.
func countAllFacets(data *dataset.Dataset) map[facetKey]facetCounts {
	all := map[facetKey]facetCounts{}
	for _, c := range data.Cities { // a region with the same name replaces the city
		all[facetKey{c.Country, c.Name}] = countFacets(c.Properties)
	}
	for _, r := range data.Regions {
		all[facetKey{r.Country, r.Name}] = countFacets(r.Properties)
	}
	for _, c := range data.Countries {
		all[facetKey{c.Code, ""}] = countFacets(c.Properties)
	}
	return all
}

// countFacets counts the values of each filter: stars and ratings in descending order, other values
// by count.
func countFacets(properties []*dataset.Property) facetCounts {
	counts := map[string]map[string]int{}
	for _, key := range facetKeys {
		counts[key] = map[string]int{}
	}
	for _, p := range properties {
		counts["propertyType"][p.Row.Kind]++
		if p.Stars > 0 {
			counts["starRating"][strconv.Itoa(p.Stars)]++
		}
		for floor := 6; floor <= 9; floor++ {
			if p.Rating >= floor*10 {
				counts["guestRatingMin"][strconv.Itoa(floor)]++
			}
		}
		for _, code := range p.Amenities {
			counts["amenities"][code]++
		}
		// The filter "partial" also matches free cancellation, so the facet counts both.
		switch p.Cancellation {
		case "free":
			counts["cancellationFlexibility"]["free"]++
			counts["cancellationFlexibility"]["partial"]++
		case "partial":
			counts["cancellationFlexibility"]["partial"]++
		}
		if p.District != "" {
			counts["neighbourhoods"][p.District]++
		}
	}
	sorted := facetCounts{}
	for key, values := range counts {
		var list []valueCount
		for value, n := range values {
			list = append(list, valueCount{value, n})
		}
		slices.SortFunc(list, func(a, b valueCount) int {
			if key == "starRating" || key == "guestRatingMin" {
				return cmp.Compare(b.value, a.value)
			}
			return cmp.Or(cmp.Compare(b.count, a.count), cmp.Compare(a.value, b.value))
		})
		sorted[key] = list[:min(len(list), maxValues)]
	}
	return sorted
}
