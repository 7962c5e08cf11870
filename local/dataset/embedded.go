package dataset

import (
	_ "embed"
	"fmt"
	"math"
	"slices"
	"strings"

	"melmastoon.ghasi.io/bff-consumer/shared/geo"
)

//go:embed nameparts.json
var namePartsJSON []byte

// nameParts are the building blocks for names of invented properties, by language and country.
type nameParts struct {
	Words  []nameWord
	Styles []nameStyle
}

type nameWord struct {
	Countries []string
	Names     map[string]string
}

// nameStyle is a kind of property with the patterns of its name by language, such as "%s Hotel".
type nameStyle struct {
	Countries []string
	Kind      string
	Weight    int
	Names     map[string]string
}

func loadNameParts() *nameParts {
	var parts nameParts
	mustDecode(namePartsJSON, &parts)
	return &parts
}

// name returns the word in a language. French defaults to the English spelling.
func (w nameWord) name(lang string) (string, bool) {
	if text, ok := w.Names[lang]; ok {
		return text, true
	}
	if lang == "fr" {
		return w.Names["en"], true
	}
	return "", false
}

// Embedded returns the default data set: invented properties in real cities of the region. It reads
// no file and panics if an embedded file is invalid.
func Embedded() *Dataset {
	known := loadGazetteer()
	rows := generateRows(known, loadNameParts())
	return build(known, rows, Report{Source: "embedded", Rows: len(rows), Kept: len(rows)})
}

// generateRows returns 8 to 12 rows for each city marked Invent.
func generateRows(known *gazetteer, parts *nameParts) []Row {
	var rows []Row
	for i := range known.Cities {
		city := &known.Cities[i]
		if !city.Invent {
			continue
		}
		words := forCountry(parts.Words, city.Country, func(w nameWord) []string { return w.Countries })
		styles := forCountry(parts.Styles, city.Country, func(s nameStyle) []string { return s.Countries })
		s := seedOf("city", city.Country+"/"+city.City)
		count := s.between("properties", 8, 12)
		first := s.pick("word", len(words))
		for n := range count {
			rows = append(rows, generateRow(city, n, words[(first+n)%len(words)], styles))
		}
	}
	return rows
}

// forCountry returns the elements of all that apply to a country.
func forCountry[T any](all []T, country string, countries func(T) []string) []T {
	var some []T
	for _, one := range all {
		if slices.Contains(countries(one), country) {
			some = append(some, one)
		}
	}
	return some
}

// generateRow returns row n of a city.
func generateRow(city *gazetteerCity, n int, w nameWord, styles []nameStyle) Row {
	id := fmt.Sprintf("sandbox/%s/%d", latin(city.City), n+1)
	s := seedOf("invented", id)
	how := pickStyle(styles, s)
	row := Row{
		ID:       id,
		Names:    map[string]string{},
		Kind:     how.Kind,
		Point:    randomPoint(city.point(), s),
		Country:  city.Country,
		City:     city.City,
		Region:   city.Region,
		District: city.Districts[s.pick("district", len(city.Districts))],
		Source:   "sandbox",
	}
	for _, lang := range Languages {
		if text, ok := w.name(lang); ok {
			row.Names[lang] = strings.Replace(how.Names[lang], "%s", text, 1)
		}
	}
	row.Name = row.Names["en"]
	return row // Given stays empty, because every member is invented
}

// pickStyle picks a style by weight.
func pickStyle(styles []nameStyle, s seed) nameStyle {
	total := 0
	for _, one := range styles {
		total += one.Weight
	}
	n := s.pick("style", total)
	for _, one := range styles {
		if n -= one.Weight; n < 0 {
			return one
		}
	}
	return styles[0] // unreachable: total is the sum of all weights
}

// randomPoint returns a point 0.2 to 6 km from the centre, with a higher density near the centre.
func randomPoint(center geo.Point, s seed) geo.Point {
	km := 0.2 + 5.8*math.Pow(float64(s.pick("distance", 1000))/1000, 1.6)
	angle := float64(s.pick("direction", 3600)) * math.Pi / 1800
	p := geo.Point{
		Lat: center.Lat + km/kmPerDegree*math.Cos(angle),
		Lng: center.Lng + km/kmPerDegree*math.Sin(angle)/math.Cos(center.Lat*math.Pi/180),
	}
	return geo.Point{Lat: math.Round(p.Lat*1e6) / 1e6, Lng: math.Round(p.Lng*1e6) / 1e6}
}
