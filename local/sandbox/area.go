package sandbox

import (
	"slices"
	"strings"

	"melmastoon.ghasi.io/bff-consumer/local/dataset"
	"melmastoon.ghasi.io/bff-consumer/shared/geo"
)

// maxCells is the largest number of H3 cells of a coverage.
const maxCells = 32

// resolvedArea is the result of resolving an area of a query.
type resolvedArea struct {
	properties    []*dataset.Property
	center        geo.Point // origin of distances
	place         *place    // nil without a name
	coverage      []string  // nil if the area is unknown or too large
	correctedName string    // the name in the data set, if it differs from the query's
}

// areaKey identifies a dataset.Area.
type areaKey struct{ country, region string }

// resolveArea finds the properties of an area. An unknown city or region has no properties. The
// caller may change the slice of properties.
func (s *Sandbox) resolveArea(a area) resolvedArea {
	switch a.Mode {
	case "point":
		center := geo.Point{Lat: a.Point.Lat, Lng: a.Point.Lng}
		l := resolvedArea{
			properties: s.data.Near(center, a.Point.RadiusKm),
			center:     center,
			coverage:   cellNames(geo.CoverCircle(center, a.Point.RadiusKm, maxCells)),
		}
		if len(l.properties) > 0 { // the place of the nearest property
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
	default: // region; validate has rejected other modes
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

// placeOf returns the place of a property.
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

// correctedName returns used, or "" if sent differs from used in case and outer spaces only.
func correctedName(sent, used string) string {
	if strings.EqualFold(strings.TrimSpace(sent), used) {
		return ""
	}
	return used
}

// computeCoverage returns the H3 cells of every city, by *dataset.City, and of every area, by
// areaKey.
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

// bounds returns a box around properties, with a margin of 0.005 degrees.
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

// boxCenter returns the centre of a box, which may cross the antimeridian.
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
