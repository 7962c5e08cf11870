package search

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

func TestSearchList_BoxMayCrossAntimeridian(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	a := h.mustSearch(h.requestBody("Kabul", `"mode":"city","city":"Kabul"`, `"mode":"bounding-box","boundingBox":{"swLat":-18,"swLng":178,"neLat":-16,"neLng":-179}`))
	if a.Header.Get("X-Cache") != "MISS" || len(a.body.Listings) != 3 {
		t.Errorf(`got %s; want X-Cache = "MISS", len(Listings) = 3`, a.Text)
	}
}

func TestSearchList_ValidatesLimitBoundaries(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	point := func(radius string) string {
		return h.requestBody("Kabul", `"mode":"city","city":"Kabul"`, `"mode":"point","point":{"lat":34.5,"lng":69.2,"radiusKm":`+radius+`}`)
	}
	box := func(width string) string {
		return h.requestBody("Kabul", `"mode":"city","city":"Kabul"`, `"mode":"bounding-box","boundingBox":{"swLat":30,"swLng":60,"neLat":35,"neLng":`+width+`}`)
	}
	dates := func(ahead, nights int) string {
		in := h.Now().AddDate(0, 0, ahead)
		ten := h.Now().AddDate(0, 0, 10)
		return h.requestBody("Kabul", fmt.Sprintf(`"checkIn":%q,"checkOut":%q`, ten.Format(time.DateOnly), ten.AddDate(0, 0, 3).Format(time.DateOnly)),
			fmt.Sprintf(`"checkIn":%q,"checkOut":%q`, in.Format(time.DateOnly), in.AddDate(0, 0, nights).Format(time.DateOnly)))
	}
	page := func(p string) string { return h.requestBody("Kabul", `"occupancy"`, `"page":`+p+`,"occupancy"`) }
	for name, c := range map[string]struct {
		body string
		want int
	}{
		"radius 199":         {point("199"), 200},
		"radius 200":         {point("200"), 200},
		"radius 201":         {point("201"), 422},
		"radius 0":           {point("0"), 422},
		"box 24":             {box("64.8"), 200},
		"box 25":             {box("65"), 200},
		"box 26":             {box("65.2"), 422},
		"today":              {dates(0, 1), 200},
		"yesterday":          {dates(-1, 2), 422},
		"499 days ahead":     {dates(499, 1), 200},
		"500 days ahead":     {dates(500, 1), 200},
		"501 days ahead":     {dates(501, 1), 422},
		"29 nights":          {dates(5, 29), 200},
		"30 nights":          {dates(5, 30), 200},
		"31 nights":          {dates(5, 31), 422},
		"no night":           {dates(5, 0), 422},
		"limit 1":            {page(`{"limit":1}`), 200},
		"limit 50":           {page(`{"limit":50}`), 200},
		"limit 51":           {page(`{"limit":51}`), 422},
		"limit 0":            {page(`{"limit":0}`), 422},
		"offset 1000":        {page(`{"offset":1000}`), 200},
		"offset 1001":        {page(`{"offset":1001}`), 422},
		"offset -1":          {page(`{"offset":-1}`), 422},
		"a name of 80":       {h.requestBody(strings.Repeat("ک", 80)), 200},
		"a name of 81":       {h.requestBody(strings.Repeat("ک", 81)), 422},
		"price as string":    {h.requestBody("Kabul", `"occupancy"`, `"filters":{"priceRange":{"min":"100","max":"200","currency":"AFN"}},"occupancy"`), 200},
		"price as number":    {h.requestBody("Kabul", `"occupancy"`, `"filters":{"priceRange":{"min":100,"currency":"AFN"}},"occupancy"`), 200},
		"price reversed":     {h.requestBody("Kabul", `"occupancy"`, `"filters":{"priceRange":{"min":"300","max":"200","currency":"AFN"}},"occupancy"`), 422},
		"price with decimal": {h.requestBody("Kabul", `"occupancy"`, `"filters":{"priceRange":{"min":1.5,"currency":"AFN"}},"occupancy"`), 422},
	} {
		t.Run(name, func(t *testing.T) {
			if a := h.do("POST", "/search", c.body); a.StatusCode != c.want {
				t.Errorf("got %d %s; want %d", a.StatusCode, a.Text, c.want)
			}
		})
	}
}

func TestSearchList_TinyBoxKeepsPositiveSize(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.mustSearch(h.requestBody("Kabul", `"mode":"city","city":"Kabul"`, `"mode":"bounding-box","boundingBox":{"swLat":34.5,"swLng":69,"neLat":34.5000000000001,"neLng":69.0000000000001}`))
	box := h.upstreams.lastQuery["geo"].(map[string]any)["boundingBox"].(map[string]any)
	if box["swLat"].(float64) >= box["neLat"].(float64) || box["swLng"].(float64) >= box["neLng"].(float64) {
		t.Errorf("got box %v; want a positive width and height", box)
	}
}
