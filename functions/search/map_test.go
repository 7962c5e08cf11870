package search

import (
	"strings"
	"testing"
	"time"
)

func (h *harness) mapRequestBody(more string) string {
	return h.requestBody("Kabul", `"mode":"city","city":"Kabul"`, `"mode":"bounding-box","boundingBox":{"swLat":34.4,"swLng":69.0,"neLat":34.6,"neLng":69.3}`,
		`"occupancy"`, more+`"occupancy"`)
}

func TestSearchMap_OnlySpotlightedPinHasRate(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.upstreams.Update(func() { h.upstreams.hits = 250 })
	plain := h.do("POST", "/search/map", h.mapRequestBody(`"zoom":12,`))
	if plain.StatusCode != 200 || len(plain.body.Pins) != 250 || plain.Header.Get("X-Cache") != "MISS" {
		t.Fatalf("got %d %s, %d pins; want 200 MISS, 250", plain.StatusCode, plain.Header.Get("X-Cache"), len(plain.body.Pins))
	}
	lit := h.do("POST", "/search/map", h.mapRequestBody(`"zoom":12,"spotlightPropertyId":"`+propertyID(7)+`",`))
	for _, pin := range lit.body.Pins {
		if has := pin.CheapestNightlyMinor != ""; has != (pin.PropertyID == propertyID(7)) {
			t.Errorf("%s: got a rate %t; want %t", pin.PropertyID, has, !has)
		}
	}
	if n := h.upstreams.Calls("queries"); n != 1 {
		t.Errorf("after moving the spotlight: got %d calls of search-aggregation; want 1", n)
	}
	h.do("POST", "/search/map", h.mapRequestBody(`"zoom":12,"spotlightPropertyId":"`+propertyID(7)+`",`))
	if n := h.upstreams.Calls("pricing"); n != 1 {
		t.Errorf("the same spotlight: got %d calls of pricing; want 1", n)
	}
	elsewhere := h.do("POST", "/search/map", h.mapRequestBody(`"spotlightPropertyId":"`+propertyID(999)+`",`))
	for _, pin := range elsewhere.body.Pins {
		if pin.CheapestNightlyMinor != "" {
			t.Errorf("%s: got a rate; want none without a spotlight on the map", pin.PropertyID)
		}
	}
}

func TestSearchMap_SpotlightWithoutPricingIsDegraded(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.upstreams.Fail("pricing")
	a := h.do("POST", "/search/map", h.mapRequestBody(`"spotlightPropertyId":"`+propertyID(1)+`",`))
	if a.StatusCode != 200 || len(a.body.Degraded) != 1 || a.body.Degraded[0].Part != "pricing" {
		t.Errorf(`got %d %s; want status 200, len(Degraded) = 1, Degraded[0].Part = "pricing"`, a.StatusCode, a.Text)
	}
}

func TestSearchMap_SmallPanHitsSameEntry(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	first := h.do("POST", "/search/map", h.mapRequestBody(`"zoom":10,`))
	second := h.do("POST", "/search/map", strings.Replace(h.mapRequestBody(`"zoom":10,`), "69.3}", "69.299}", 1))
	if first.body.QueryHash != second.body.QueryHash || second.Header.Get("X-Cache") != "HIT" {
		t.Errorf(`got %s; want QueryHash = %v, X-Cache = "HIT"`, second.Header.Get("X-Cache"), second.body.QueryHash)
	}
	box := h.upstreams.lastQuery["geo"].(map[string]any)["boundingBox"].(map[string]any)
	for side, limit := range map[string]float64{"swLat": 34.4, "swLng": 69.0} {
		if box[side].(float64) > limit {
			t.Errorf("%s: got %v; want at most %v", side, box[side], limit)
		}
	}
	for side, limit := range map[string]float64{"neLat": 34.6, "neLng": 69.3} {
		if box[side].(float64) < limit {
			t.Errorf("%s: got %v; want at least %v", side, box[side], limit)
		}
	}
}

func TestSearchMap_RejectsOtherThanBoundingBox(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	for name, body := range map[string]string{
		"a city":          h.requestBody("Kabul"),
		"a page":          h.mapRequestBody(`"page":{"limit":3},`),
		"zoom 23":         h.mapRequestBody(`"zoom":23,`),
		"zoom -1":         h.mapRequestBody(`"zoom":-1,`),
		"half a zoom":     h.mapRequestBody(`"zoom":1.5,`),
		"a bad spotlight": h.mapRequestBody(`"spotlightPropertyId":"ppt_1",`),
	} {
		t.Run(name, func(t *testing.T) {
			if a := h.do("POST", "/search/map", body); a.StatusCode != 422 || len(a.Errors) == 0 {
				t.Errorf("got %d %s; want 422 with faults", a.StatusCode, a.Text)
			}
		})
	}
}

func TestSearchMap_ExpiredSpotlightRateIsNotShown(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.upstreams.Update(func() { h.upstreams.capturedAt = h.Now })
	body := h.mapRequestBody(`"spotlightPropertyId":"` + propertyID(1) + `",`)
	h.do("POST", "/search/map", body)
	h.upstreams.Fail("pricing")
	h.upstreams.Fail("search")
	h.Advance(2 * time.Minute)
	a := h.do("POST", "/search/map", body)
	if a.StatusCode != 200 || strings.Contains(a.Text, "cheapestNightlyMinor") || len(a.body.Degraded) != 1 {
		t.Errorf(`got %d %s; want status 200, body without "cheapestNightlyMinor", len(Degraded) = 1`, a.StatusCode, a.Text)
	}
}
