package dataset

import (
	"cmp"
	"slices"
	"strings"
	"unicode"

	"melmastoon.ghasi.io/bff-consumer/shared/geo"
)

// Place is somewhere a guest may look for a place to stay.
type Place struct {
	Kind       string            `json:"kind"`  // city, region, country
	Query      string            `json:"query"` // what a search finds it by
	Name       string            `json:"name"`
	Names      map[string]string `json:"names,omitempty"` // by language
	Country    string            `json:"country"`
	Center     geo.Point         `json:"center"`
	Properties int               `json:"properties"`
}

// Places lists the places that have a name, in any language, which begins with text, or one of whose words does. Those whose name
// begins so come first, then cities, then the larger ones. An empty text finds every city.
func (d *Dataset) Places(text string, most int) []Place {
	wanted := Fold(text)
	best := map[any]int{} // *City or areaKey → 0: the name begins so, 1: a word of it
	found := map[any]Place{}
	note := func(key any, rank int, place func() Place) {
		if old, known := best[key]; known && old <= rank {
			return
		}
		best[key] = rank
		found[key] = place()
	}
	for _, c := range d.Cities {
		if rank, ok := prefixRank(wanted, c.Name, c.Names); ok {
			note(c, rank, func() Place { return d.cityPlace(c) })
		} else if wanted != "" && slices.Contains(d.cityNames[wanted], c) {
			note(c, 0, func() Place { return d.cityPlace(c) }) // by another name
		}
	}
	if wanted != "" {
		for _, r := range d.Regions {
			if rank, ok := prefixRank(wanted, r.Name, r.Names); ok {
				note(r, rank, func() Place {
					return Place{"region", d.areaQuery(r.Name, r.Country), r.Name, r.Names, r.Country, centerOf(r.Properties), len(r.Properties)}
				})
			}
		}
		for _, c := range d.Countries {
			for _, name := range countryNames(c.Code) {
				if rank, ok := prefixRank(wanted, name, nil); ok {
					note(c, rank, func() Place {
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

// prefixRank reports whether a name begins with the folded text (0), or a later word of it does (1).
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

// isSeparator reports what stands between the words of a name.
func isSeparator(r rune) bool { return unicode.IsSpace(r) || unicode.IsPunct(r) }

func (d *Dataset) cityPlace(c *City) Place {
	query := c.Name
	if d.City(query) != c { // a larger one is called so too
		query += ", " + countryNames(c.Country)[0]
	}
	return Place{"city", query, c.Name, c.Names, c.Country, c.Center, len(c.Properties)}
}

// areaQuery names a region so that Area finds it, and not one of another country.
func (d *Dataset) areaQuery(name, country string) string {
	if a, ok := d.Area(name); ok && a.Country == country && a.Region == name {
		return name
	}
	return name + ", " + countryNames(country)[0]
}

// centerOf is the middle of properties.
func centerOf(properties []*Property) (p geo.Point) {
	for _, one := range properties {
		p.Lat += one.Row.Point.Lat / float64(len(properties))
		p.Lng += one.Row.Point.Lng / float64(len(properties))
	}
	return p
}
