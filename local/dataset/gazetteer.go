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

// Languages are the ones that places and labels are known in.
var Languages = []string{"en", "fr", "ar", "fa", "ps", "ur", "ru", "tg"}

//go:embed gazetteer.json
var gazetteerJSON []byte

// gazetteer is what we know of real places: their names in the region's languages, and the province of each city.
type gazetteer struct {
	Cities  []gazetteerCity
	Regions []gazetteerRegion
}

type gazetteerCity struct {
	City, Country, Region string
	Lat, Lng              float64
	Names                 map[string]string
	Aliases               []string
	Districts             []string // real quarters, for the properties we invent
	Invent                bool     // whether the embedded data set has properties here
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

// mustDecode reads a file that is compiled in; a mistake in it is ours and a test's to find.
func mustDecode(data []byte, into any) {
	if err := json.Unmarshal(data, into); err != nil {
		panic(fmt.Sprintf("dataset: embedded file: %v", err))
	}
}

func (c *gazetteerCity) point() geo.Point { return geo.Point{Lat: c.Lat, Lng: c.Lng} }

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

// findCity finds what we know of a city that is called so and is not far from p.
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

// nearest finds the closest known city within km, of one country or of any ("").
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

// findRegion finds what we know of a region by one of its names.
func (g *gazetteer) findRegion(country, name string) *gazetteerRegion {
	folded := Fold(name)
	for i := range g.Regions {
		r := &g.Regions[i]
		if r.Country != country {
			continue
		}
		for _, called := range r.allNames() {
			if Fold(called) == folded {
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

// countryNames are a country's names in every language we know places in, English first.
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

// cutPlace splits "Fès, Morocco" at the last comma, which may be an Arabic one.
func cutPlace(text string) (name, rest string, ok bool) {
	at := strings.LastIndexAny(text, ",،")
	if at < 0 {
		return "", "", false
	}
	return text[:at], strings.TrimLeft(text[at:], ",،"), true
}
