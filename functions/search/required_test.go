package search

import (
	"slices"
	"strings"
	"testing"
)

// A missing member is the fault "required"; it must not become a fault of its zero value.
func TestSearchRequest_MissingFieldsAreReportedAsRequired(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	without := func(member string) string {
		body := h.requestBody("Kabul", `"adults":2,"children":0,"rooms":1`, `"adults":2,"rooms":1`)
		return strings.Replace(strings.Replace(body, member+",", "", 1), ","+member, "", 1)
	}
	place := func(geo string) string { return h.requestBody("Kabul", `{"mode":"city","city":"Kabul"}`, geo) }
	for name, c := range map[string]struct {
		path, body string
		fields     []string
	}{
		"empty list request":    {"/search", `{}`, []string{"geo.mode", "dates.checkIn", "dates.checkOut", "occupancy.adults", "occupancy.rooms"}},
		"empty map request":     {"/search/map", `{}`, []string{"geo.mode", "dates.checkIn", "dates.checkOut", "occupancy.adults", "occupancy.rooms"}},
		"an occupancy of {}":    {"/search", h.requestBody("Kabul", `{"adults":2,"children":0,"rooms":1}`, `{}`), []string{"occupancy.adults", "occupancy.rooms"}},
		"no adults":             {"/search", without(`"adults":2`), []string{"occupancy.adults"}},
		"no rooms":              {"/search", without(`"rooms":1`), []string{"occupancy.rooms"}},
		"a point without place": {"/search", place(`{"mode":"point","point":{"radiusKm":5}}`), []string{"geo.point.lat", "geo.point.lng"}},
		"a point without size":  {"/search", place(`{"mode":"point","point":{"lat":0,"lng":0}}`), []string{"geo.point.radiusKm"}},
		"a box without sides":   {"/search/map", place(`{"mode":"bounding-box","boundingBox":{"neLat":1,"neLng":1}}`), []string{"geo.boundingBox.swLat", "geo.boundingBox.swLng"}},
		"a price, no currency":  {"/search", h.requestBody("Kabul", `"occupancy"`, `"filters":{"priceRange":{"min":"1"}},"occupancy"`), []string{"filters.priceRange.currency"}},
	} {
		t.Run(name, func(t *testing.T) {
			a := h.do("POST", c.path, c.body)
			var fields []string
			for _, e := range a.Errors {
				if e.Code != "required" {
					t.Errorf("%s: got code %q; want required", e.Field, e.Code)
				}
				fields = append(fields, e.Field)
			}
			if a.StatusCode != 422 || !slices.Equal(fields, c.fields) {
				t.Errorf("got %d %v; want 422 %v", a.StatusCode, fields, c.fields)
			}
		})
	}
	if a := h.do("GET", "/facets", ""); a.Errors[0].Field != "country" || a.Errors[0].Code != "required" {
		t.Errorf("facets without a country: got %s; want country required", a.Text)
	}
	if a := h.mustSearch(place(`{"mode":"point","point":{"lat":0,"lng":0,"radiusKm":5}}`)); a.StatusCode != 200 {
		t.Errorf("latitude 0, longitude 0: got %s; want 200", a.Text)
	}
}
