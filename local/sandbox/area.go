package sandbox

import (
	"slices"
	"strings"

	"melmastoon.ghasi.io/bff-consumer/local/dataset"
	"melmastoon.ghasi.io/bff-consumer/shared/geo"
)

// maxCells is how many H3 cells a coverage has at most.
const maxCells = 32

// resolvedArea is what an area was resolved to.
type resolvedArea struct {
	properties    []*dataset.Property
	center        geo.Point // where distances are measured from
	place         *place    // nil: nothing we have a name for
	coverage      []string  // nil: too large, or nowhere
	correctedName string    // the name that was looked for, when another one was sent
}

// areaKey is an Area without its properties.
type areaKey struct{ country, region string }

func (s *Sandbox) resolveArea(a area) resolvedArea {
	switch a.Mode {
	case "point":
		center := geo.Point{Lat: a.Point.Lat, Lng: a.Point.Lng}
		l := resolvedArea{
			properties: s.data.Near(center, a.Point.RadiusKm),
			center:     center,
			coverage:   cellNames(geo.CoverCircle(center, a.Point.RadiusKm, maxCells)),
		}
		if len(l.properties) > 0 { // the nearest one says where we are
			l.place = placeOf(l.properties[0])
		}
		return l
	case "bounding-box":
		return resolvedArea{
			properties: s.data.Within(*a.Box),
			center:     boxCenter(*a.Box),
			coverage:   cellNames(geo.CoverBox(*a.Box, maxCells)),
		}
	case "city":
		city := s.data.City(*a.City)
		if city == nil {
			return resolvedArea{}
		}
		l := resolvedArea{
			properties:    slices.Clone(city.Properties),
			center:        city.Center,
			place:         &place{City: city.Name, Country: city.Country},
			coverage:      s.coverage[city],
			correctedName: correctedName(*a.City, city.Name),
		}
		if city.Region != nil {
			l.place.Region = city.Region.Name
		}
		return l
	default: // region; check has seen to it
		found, ok := s.data.Area(*a.Region)
		if !ok {
			return resolvedArea{}
		}
		return resolvedArea{
			properties:    slices.Clone(found.Properties),
			center:        boxCenter(bounds(found.Properties)),
			place:         &place{Region: found.Name, Country: found.Country},
			coverage:      s.coverage[areaKey{found.Country, found.Region}],
			correctedName: correctedName(*a.Region, found.Name),
		}
	}
}

func placeOf(p *dataset.Property) *place {
	at := &place{Country: p.Country}
	if p.City != nil {
		at.City = p.City.Name
	}
	if p.Region != nil {
		at.Region = p.Region.Name
	}
	return at
}

// correctedName is the name that was looked for, unless it is the one sent but for upper and lower case.
func correctedName(sent, used string) string {
	if strings.EqualFold(strings.TrimSpace(sent), used) {
		return ""
	}
	return used
}

// computeCoverage works out the coverage of every city and area.
func computeCoverage(data *dataset.Dataset) map[any][]string {
	covers := map[any][]string{}
	for _, c := range data.Cities {
		covers[c] = cellNames(geo.CoverCircle(c.Center, c.RadiusKm+0.1, maxCells))
	}
	for _, c := range data.Countries {
		covers[areaKey{c.Code, ""}] = cellNames(geo.CoverBox(bounds(c.Properties), maxCells))
	}
	for _, r := range data.Regions {
		covers[areaKey{r.Country, r.Name}] = cellNames(geo.CoverBox(bounds(r.Properties), maxCells))
	}
	return covers
}

func cellNames(cells []geo.Cell) []string {
	names := make([]string, len(cells))
	for i, c := range cells {
		names[i] = c.String()
	}
	return names
}

// bounds is a box around properties, a little larger than they need.
func bounds(properties []*dataset.Property) geo.Box {
	const margin = 0.005 // degrees
	box := geo.Box{SwLat: 90, SwLng: 180, NeLat: -90, NeLng: -180}
	for _, p := range properties {
		at := p.Row.Point
		box.SwLat, box.NeLat = min(box.SwLat, at.Lat), max(box.NeLat, at.Lat)
		box.SwLng, box.NeLng = min(box.SwLng, at.Lng), max(box.NeLng, at.Lng)
	}
	return geo.Box{
		SwLat: max(box.SwLat-margin, -90), SwLng: max(box.SwLng-margin, -180),
		NeLat: min(box.NeLat+margin, 90), NeLng: min(box.NeLng+margin, 180),
	}
}

func boxCenter(box geo.Box) geo.Point {
	width := box.NeLng - box.SwLng
	if width < 0 {
		width += 360
	}
	lng := box.SwLng + width/2
	if lng > 180 {
		lng -= 360
	}
	return geo.Point{Lat: (box.SwLat + box.NeLat) / 2, Lng: lng}
}
