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
		t.Fatalf("%d %s, %d pins", plain.StatusCode, plain.Header.Get("X-Cache"), len(plain.body.Pins))
	}
	lit := h.do("POST", "/search/map", h.mapRequestBody(`"zoom":12,"spotlightPropertyId":"`+propertyID(7)+`",`))
	for _, pin := range lit.body.Pins {
		if has := pin.CheapestNightlyMinor != ""; has != (pin.PropertyID == propertyID(7)) {
			t.Errorf("%s has a rate: %t", pin.PropertyID, has)
		}
	}
	if n := h.upstreams.Calls("queries"); n != 1 {
		t.Errorf("moving the spotlight asked search-aggregation %d times", n)
	}
	h.do("POST", "/search/map", h.mapRequestBody(`"zoom":12,"spotlightPropertyId":"`+propertyID(7)+`",`))
	if n := h.upstreams.Calls("pricing"); n != 1 {
		t.Errorf("the same spotlight asked pricing %d times", n)
	}
	elsewhere := h.do("POST", "/search/map", h.mapRequestBody(`"spotlightPropertyId":"`+propertyID(999)+`",`))
	for _, pin := range elsewhere.body.Pins {
		if pin.CheapestNightlyMinor != "" {
			t.Errorf("%s has a rate that nobody asked for", pin.PropertyID)
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
			t.Errorf("%s is %v: the box lost what was asked for", side, box[side])
		}
	}
	for side, limit := range map[string]float64{"neLat": 34.6, "neLng": 69.3} {
		if box[side].(float64) < limit {
			t.Errorf("%s is %v: the box lost what was asked for", side, box[side])
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

func TestFacets_ResponseIsPublicAndCached(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	a := h.do("GET", "/facets?country=AF&locale=fr&currency=EUR", "", "Cookie", "gms_id=whatever")
	if a.StatusCode != 200 || a.SessionCookie() != "" || !strings.Contains(a.Text, "wifi (fr)") {
		t.Fatalf(`got %d %s; want status 200, cookie = "", body containing "wifi (fr)"`, a.StatusCode, a.Text)
	}
	if got := a.Header.Get("Cache-Control") + " | " + a.Header.Get("Vary"); got != "public, max-age=15, s-maxage=300, stale-while-revalidate=60 | Accept-Encoding" {
		t.Errorf("with locale and currency in the URL: %s", got)
	}
	a = h.do("GET", "/facets?country=AF", "", "Accept-Language", "ru")
	if got := a.Header.Get("Vary"); got != "Accept-Language, X-Currency, Accept-Encoding" || !strings.Contains(a.Text, "wifi (ru)") {
		t.Errorf(`got Vary %s: %s; want "Accept-Language, X-Currency, Accept-Encoding", body containing "wifi (ru)"`, got, a.Text)
	}
	calls := h.upstreams.Calls("facets")
	if a = h.do("GET", "/facets?country=af&locale=fr&currency=USD", ""); a.Header.Get("X-Cache") != "HIT" || h.upstreams.Calls("facets") != calls {
		t.Errorf("the second is %s", a.Header.Get("X-Cache"))
	}
	h.upstreams.Fail("search")
	for minute := 0; minute < 70 && (minute == 0 || a.Header.Get("X-Cache") == "HIT"); minute++ { // an hour, give or take a tenth
		h.Advance(time.Minute)
		a = h.do("GET", "/facets?country=AF&locale=fr&currency=EUR", "")
	}
	if got := a.Header.Get("Cache-Control"); a.Header.Get("X-Cache") != "STALE" || strings.Contains(got, "300") {
		t.Errorf("a stale answer is %s, %s", a.Header.Get("X-Cache"), got)
	}
}

func TestFacets_UnknownCountryAnswers404(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	for range 2 {
		if a := h.do("GET", "/facets?country=AQ", ""); a.StatusCode != 404 || a.Header.Get("Cache-Control") != "no-store" {
			t.Errorf(`got %d %s; want status 404, Cache-Control = "no-store"`, a.StatusCode, a.Text)
		}
	}
	if n := h.upstreams.Calls("facets"); n != 1 {
		t.Errorf("asked %d times", n)
	}
}

func TestFacets_InvalidQueryNamesParameter(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	for query, want := range map[string]string{
		"":                         "country",
		"?country=AFG":             "country",
		"?country=1F":              "country",
		"?country=AF&utm_source=x": "utm_source",
		"?country=AF&country=IR":   "country",
		"?country=AF&locale=xx":    "locale",
		"?country=AF&currency=XXX": "currency",
		"?country=AF&region=%00":   "region",
		"?country=AF&region=%ff":   "region",
		"?country=AF&a;b":          "query",
	} {
		t.Run(query, func(t *testing.T) {
			a := h.do("GET", "/facets"+query, "")
			if a.StatusCode < 400 || a.StatusCode > 499 || len(a.Errors) == 0 || a.Errors[0].Field != want {
				t.Errorf("got %d %s; want 4xx that names %v", a.StatusCode, a.Text, want)
			}
		})
	}
	if n := h.upstreams.Calls("facets"); n != 0 {
		t.Errorf("asked %d times", n)
	}
}
