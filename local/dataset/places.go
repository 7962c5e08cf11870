package dataset

import (
	"cmp"
	"slices"
	"strings"
	"unicode"

	"melmastoon.ghasi.io/bff-consumer/shared/geo"
)

// Place is a city, a region or a country, as a suggestion for a search.
type Place struct {
	Kind       string            `json:"kind"`  // city, region or country
	Query      string            `json:"query"` // text by which City or Area finds the place
	Name       string            `json:"name"`
	Names      map[string]string `json:"names,omitempty"` // by language
	Country    string            `json:"country"`
	Center     geo.Point         `json:"center"`
	Properties int               `json:"properties"`
}

// Places returns at most most places with a name in any language of which the whole, or a later
// word, begins with text. Order: names that begin with text before later words; cities, regions,
// countries; most properties first. An empty text matches every city and nothing else.
func (d *Dataset) Places(text string, most int) []Place {
	wanted := Fold(text)
	best := map[any]int{} // by *City, *Region or *Country; ranks of prefixRank
	found := map[any]Place{}
	add := func(key any, rank int, place func() Place) {
		if old, known := best[key]; known && old <= rank {
			return
		}
		best[key] = rank
		found[key] = place()
	}
	for _, c := range d.Cities {
		if rank, ok := prefixRank(wanted, c.Name, c.Names); ok {
			add(c, rank, func() Place { return d.cityPlace(c) })
		} else if wanted != "" && slices.Contains(d.cityNames[wanted], c) {
			add(c, 0, func() Place { return d.cityPlace(c) }) // by an alias
		}
	}
	if wanted != "" {
		for _, r := range d.Regions {
			if rank, ok := prefixRank(wanted, r.Name, r.Names); ok {
				add(r, rank, func() Place {
					return Place{"region", d.areaQuery(r.Name, r.Country), r.Name, r.Names, r.Country, centerOf(r.Properties), len(r.Properties)}
				})
			}
		}
		for _, c := range d.Countries {
			for _, name := range countryNames(c.Code) {
				if rank, ok := prefixRank(wanted, name, nil); ok {
					add(c, rank, func() Place {
						return Place{"country", c.Code, c.Name, nil, c.Code, centerOf(c.Properties), len(c.Properties)}
					})
				}
			}
		}
	}
	keys := make([]any, 0, len(found))
	for key := range found {
		keys = append(keys, key)
	}
	kinds := []string{"city", "region", "country"}
	slices.SortFunc(keys, func(x, y any) int {
		a, b := found[x], found[y]
		return cmp.Or(cmp.Compare(best[x], best[y]), cmp.Compare(slices.Index(kinds, a.Kind), slices.Index(kinds, b.Kind)),
			cmp.Compare(b.Properties, a.Properties), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Country, b.Country))
	})
	places := make([]Place, min(most, len(keys)))
	for i := range places {
		places[i] = found[keys[i]]
	}
	return places
}

// prefixRank compares a name and its translations with a folded prefix. rank is 0 if a name begins
// with the prefix and 1 if only a later word begins with the prefix. ok is false without a match.
func prefixRank(wanted, name string, names map[string]string) (rank int, ok bool) {
	rank = 2
	look := func(name string) {
		for i, word := range strings.FieldsFunc(name, isSeparator) {
			rest := name
			if i > 0 {
				rest = word
			}
			if strings.HasPrefix(Fold(rest), wanted) {
				rank = min(rank, min(i, 1))
			}
		}
	}
	look(name)
	for _, other := range names {
		look(other)
	}
	return rank, rank < 2
}

// isSeparator reports whether r separates the words of a name.
func isSeparator(r rune) bool { return unicode.IsSpace(r) || unicode.IsPunct(r) }

// cityPlace returns the suggestion of a city, with a query that City resolves to the same city.
func (d *Dataset) cityPlace(c *City) Place {
	query := c.Name
	if d.City(query) != c { // a larger city has the same name
		query += ", " + countryNames(c.Country)[0]
	}
	return Place{"city", query, c.Name, c.Names, c.Country, c.Center, len(c.Properties)}
}

// areaQuery returns a text that Area resolves to the region of the country.
func (d *Dataset) areaQuery(name, country string) string {
	if a, ok := d.Area(name); ok && a.Country == country && a.Region == name {
		return name
	}
	return name + ", " + countryNames(country)[0]
}

// centerOf returns the mean position of properties.
func centerOf(properties []*Property) (p geo.Point) {
	for _, one := range properties {
		p.Lat += one.Row.Point.Lat / float64(len(properties))
		p.Lng += one.Row.Point.Lng / float64(len(properties))
	}
	return p
}
