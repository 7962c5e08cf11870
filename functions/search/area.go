package search

import (
	"fmt"
	"slices"
	"strings"

	"melmastoon.ghasi.io/bff-consumer/shared/geo"
	"melmastoon.ghasi.io/bff-consumer/shared/problem"
	"melmastoon.ghasi.io/bff-consumer/shared/upstream"
)

const (
	maxRadiusKm = 200
	maxBoxDeg2  = 25
)

// area is the place to search. Mode names the single place of the four that is set.
type area struct {
	Mode        string  `json:"mode"`
	Point       *circle `json:"point"`
	BoundingBox *box    `json:"boundingBox"`
	City        string  `json:"city"`
	Region      string  `json:"region"`
}

var geoModes = []string{"point", "bounding-box", "city", "region"}

// circle is upstream.Circle as decoded from a request. Pointers tell an absent number from 0:
// latitude 0, longitude 0 is a place off Africa.
type circle struct {
	Lat      *float64 `json:"lat"`
	Lng      *float64 `json:"lng"`
	RadiusKm *float64 `json:"radiusKm"`
}

// box is geo.Box as decoded from a request.
type box struct {
	SwLat *float64 `json:"swLat"`
	SwLng *float64 `json:"swLng"`
	NeLat *float64 `json:"neLat"`
	NeLng *float64 `json:"neLng"`
}

// value returns the circle. Panics unless every number is set.
func (c *circle) value() upstream.Circle {
	return upstream.Circle{Lat: *c.Lat, Lng: *c.Lng, RadiusKm: *c.RadiusKm}
}

// value returns the box. Panics unless every number is set.
func (b *box) value() geo.Box {
	return geo.Box{SwLat: *b.SwLat, SwLng: *b.SwLng, NeLat: *b.NeLat, NeLng: *b.NeLng}
}

// check validates the area: Mode is known, the named place is set and valid, and no other place is
// set. Names of city and region are normalized.
func (a *area) check(f *problem.FieldErrors) {
	given := map[string]bool{
		"point": a.Point != nil, "bounding-box": a.BoundingBox != nil, "city": a.City != "", "region": a.Region != "",
	}
	member := map[string]string{"point": "point", "bounding-box": "boundingBox", "city": "city", "region": "region"}
	switch {
	case a.Mode == "":
		f.Add("geo.mode", "required", "Must be one of "+strings.Join(geoModes, ", ")+".")
		return
	case !slices.Contains(geoModes, a.Mode):
		f.Add("geo.mode", "not-supported", "Must be one of "+strings.Join(geoModes, ", ")+".")
		return
	}
	if !given[a.Mode] {
		f.Add("geo."+member[a.Mode], "required", "The mode "+a.Mode+" requires this member.")
	}
	for _, mode := range geoModes {
		if mode != a.Mode && given[mode] {
			f.Add("geo."+member[mode], "exactly-one", "Search by exactly one of point, boundingBox, city and region.")
		}
	}
	if a.Point != nil {
		a.Point.check(f)
	}
	if a.BoundingBox != nil {
		a.BoundingBox.check(f)
	}
	a.City = parsePlaceName(f, "geo.city", a.City)
	a.Region = parsePlaceName(f, "geo.region", a.Region)
}

func (c *circle) check(f *problem.FieldErrors) {
	if !requireNumbers(f, "geo.point", requiredNumber{"lat", c.Lat}, requiredNumber{"lng", c.Lng}, requiredNumber{"radiusKm", c.RadiusKm}) {
		return
	}
	p := c.value()
	if !(geo.Point{Lat: p.Lat, Lng: p.Lng}).Valid() {
		f.Add("geo.point", "out-of-range", "lat must be from -90 to 90, lng from -180 to 180.")
	}
	if !(p.RadiusKm > 0 && p.RadiusKm <= maxRadiusKm) {
		f.Add("geo.point.radiusKm", "out-of-range", fmt.Sprintf("Must be more than 0 and at most %d.", maxRadiusKm))
	}
}

func (b *box) check(f *problem.FieldErrors) {
	if !requireNumbers(f, "geo.boundingBox", requiredNumber{"swLat", b.SwLat}, requiredNumber{"swLng", b.SwLng}, requiredNumber{"neLat", b.NeLat}, requiredNumber{"neLng", b.NeLng}) {
		return
	}
	switch value := b.value(); {
	case !value.Valid():
		f.Add("geo.boundingBox", "out-of-range", "The south-west corner must lie south of the north-east one, the box must have a width, and both must be on the globe.")
	case value.AreaDeg2() > maxBoxDeg2*(1+1e-9): // differences of coordinates such as 65.2-60.2 have rounding errors
		f.Add("geo.boundingBox", "too-large", fmt.Sprintf("Must cover at most %d square degrees.", maxBoxDeg2))
	}
}

// requiredNumber is a number of a circle or box; value is nil for an absent number.
type requiredNumber struct {
	name  string
	value *float64
}

// requireNumbers adds a fault for each absent number of the field parent. complete reports whether
// all numbers are present.
func requireNumbers(f *problem.FieldErrors, parent string, numbers ...requiredNumber) (complete bool) {
	complete = true
	for _, n := range numbers {
		if n.value == nil {
			f.Add(parent+"."+n.name, "required", "A number is required.")
			complete = false
		}
	}
	return complete
}
