package dataset

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"strings"

	"golang.org/x/text/language"
	"golang.org/x/text/language/display"

	"melmastoon.ghasi.io/bff-consumer/shared/geo"
)

// Languages are the languages of place names and labels.
var Languages = []string{"en", "fr", "ar", "fa", "ps", "ur", "ru", "tg"}

//go:embed gazetteer.json
var gazetteerJSON []byte

// gazetteer lists real cities and regions with their names in Languages, and the region of each
// city.
type gazetteer struct {
	Cities  []gazetteerCity
	Regions []gazetteerRegion
}

type gazetteerCity struct {
	City, Country, Region string
	Lat, Lng              float64
	Names                 map[string]string
	Aliases               []string
	Districts             []string // real districts, for invented properties
	Invent                bool     // the embedded data set has properties in this city
}

type gazetteerRegion struct {
	Country, Name string
	Names         map[string]string
	Aliases       []string
}

func loadGazetteer() *gazetteer {
	var g gazetteer
	mustDecode(gazetteerJSON, &g)
	return &g
}

// mustDecode decodes an embedded JSON file. It panics for an invalid file; a test decodes every
// file.
func mustDecode(data []byte, into any) {
	if err := json.Unmarshal(data, into); err != nil {
		panic(fmt.Sprintf("dataset: embedded file: %v", err))
	}
}

func (c *gazetteerCity) point() geo.Point { return geo.Point{Lat: c.Lat, Lng: c.Lng} }

// hasName reports whether a folded name is the name, a translation or an alias of the city.
func (c *gazetteerCity) hasName(folded string) bool {
	if Fold(c.City) == folded {
		return true
	}
	for _, name := range c.Names {
		if Fold(name) == folded {
			return true
		}
	}
	for _, name := range c.Aliases {
		if Fold(name) == folded {
			return true
		}
	}
	return false
}

// findCity returns the city of a country with a name, within 80 km of p, or nil.
func (g *gazetteer) findCity(country, name string, p geo.Point) *gazetteerCity {
	folded := Fold(name)
	for i := range g.Cities {
		c := &g.Cities[i]
		if c.Country == country && geo.DistanceKm(c.point(), p) < 80 && c.hasName(folded) {
			return c
		}
	}
	return nil
}

// nearest returns the closest city within km of p, or nil. country "" means any country.
func (g *gazetteer) nearest(country string, p geo.Point, km float64) *gazetteerCity {
	var best *gazetteerCity
	for i := range g.Cities {
		c := &g.Cities[i]
		if country != "" && c.Country != country {
			continue
		}
		if away := geo.DistanceKm(c.point(), p); away <= km {
			best, km = c, away
		}
	}
	return best
}

// findRegion returns the region of a country with a name, in any language, or nil.
func (g *gazetteer) findRegion(country, name string) *gazetteerRegion {
	folded := Fold(name)
	for i := range g.Regions {
		r := &g.Regions[i]
		if r.Country != country {
			continue
		}
		for _, alias := range r.allNames() {
			if Fold(alias) == folded {
				return r
			}
		}
	}
	return nil
}

func (r *gazetteerRegion) allNames() []string {
	all := append([]string{r.Name}, r.Aliases...)
	for _, name := range r.Names {
		all = append(all, name)
	}
	return all
}

// countryNames returns a country's names in Languages, English first, or the code for an unknown
// country.
func countryNames(code string) []string {
	region, err := language.ParseRegion(code)
	if err != nil {
		return []string{code}
	}
	var names []string
	for _, lang := range Languages {
		if name := display.Regions(language.Make(lang)).Name(region); name != "" {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return []string{code}
	}
	return names
}

// cutPlace splits "Fès, Morocco" at the last comma, Latin or Arabic. ok is false without a comma.
func cutPlace(text string) (name, rest string, ok bool) {
	at := strings.LastIndexAny(text, ",،")
	if at < 0 {
		return "", "", false
	}
	return text[:at], strings.TrimLeft(text[at:], ",،"), true
}
