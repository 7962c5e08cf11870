package search

import (
	"strings"
	"testing"
	"time"
)

func (h *house) mapRequest(more string) string {
	return h.request("Kabul", `"mode":"city","city":"Kabul"`, `"mode":"bounding-box","boundingBox":{"swLat":34.4,"swLng":69.0,"neLat":34.6,"neLng":69.3}`,
		`"occupancy"`, more+`"occupancy"`)
}

func TestOnlyTheSpotlightedPinHasARate(t *testing.T) {
	h := newHouse(t)
	h.up.Change(func() { h.up.hits = 250 })
	plain := h.do("POST", "/search/map", h.mapRequest(`"zoom":12,`))
	if plain.StatusCode != 200 || len(plain.list.Pins) != 250 || plain.Header.Get("X-Cache") != "MISS" {
		t.Fatalf("%d %s, %d pins", plain.StatusCode, plain.Header.Get("X-Cache"), len(plain.list.Pins))
	}
	lit := h.do("POST", "/search/map", h.mapRequest(`"zoom":12,"spotlightPropertyId":"`+propertyID(7)+`",`))
	for _, pin := range lit.list.Pins {
		if has := pin.CheapestNightlyMinor != ""; has != (pin.PropertyID == propertyID(7)) {
			t.Errorf("%s has a rate: %t", pin.PropertyID, has)
		}
	}
	if n := h.up.Calls("queries"); n != 1 {
		t.Errorf("moving the spotlight asked search-aggregation %d times", n)
	}
	h.do("POST", "/search/map", h.mapRequest(`"zoom":12,"spotlightPropertyId":"`+propertyID(7)+`",`))
	if n := h.up.Calls("pricing"); n != 1 {
		t.Errorf("the same spotlight asked pricing %d times", n)
	}
	elsewhere := h.do("POST", "/search/map", h.mapRequest(`"spotlightPropertyId":"`+propertyID(999)+`",`))
	for _, pin := range elsewhere.list.Pins {
		if pin.CheapestNightlyMinor != "" {
			t.Errorf("%s has a rate that nobody asked for", pin.PropertyID)
		}
	}
}

func TestASpotlightWithoutPricingIsNamed(t *testing.T) {
	h := newHouse(t)
	h.up.Fail("pricing")
	a := h.do("POST", "/search/map", h.mapRequest(`"spotlightPropertyId":"`+propertyID(1)+`",`))
	if a.StatusCode != 200 || len(a.list.Degraded) != 1 || a.list.Degraded[0].Part != "pricing" {
		t.Errorf("%d %s", a.StatusCode, a.Text)
	}
}

func TestASmallPanFindsTheSameMap(t *testing.T) {
	h := newHouse(t)
	first := h.do("POST", "/search/map", h.mapRequest(`"zoom":10,`))
	second := h.do("POST", "/search/map", strings.Replace(h.mapRequest(`"zoom":10,`), "69.3}", "69.299}", 1))
	if first.list.QueryHash != second.list.QueryHash || second.Header.Get("X-Cache") != "HIT" {
		t.Errorf("%s", second.Header.Get("X-Cache"))
	}
	box := h.up.last["geo"].(map[string]any)["boundingBox"].(map[string]any)
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

func TestAMapIsABox(t *testing.T) {
	h := newHouse(t)
	for name, body := range map[string]string{
		"a city":          h.request("Kabul"),
		"a page":          h.mapRequest(`"page":{"limit":3},`),
		"zoom 23":         h.mapRequest(`"zoom":23,`),
		"zoom -1":         h.mapRequest(`"zoom":-1,`),
		"half a zoom":     h.mapRequest(`"zoom":1.5,`),
		"a bad spotlight": h.mapRequest(`"spotlightPropertyId":"ppt_1",`),
	} {
		if a := h.do("POST", "/search/map", body); a.StatusCode != 422 || len(a.Errors) == 0 {
			t.Errorf("%s: %d %s", name, a.StatusCode, a.Text)
		}
	}
}

func TestAnOldSpotlightIsNeverShownAsFresh(t *testing.T) {
	h := newHouse(t)
	h.up.Change(func() { h.up.captured = h.Now })
	body := h.mapRequest(`"spotlightPropertyId":"` + propertyID(1) + `",`)
	h.do("POST", "/search/map", body)
	h.up.Fail("pricing")
	h.up.Fail("search")
	h.Advance(2 * time.Minute)
	a := h.do("POST", "/search/map", body)
	if a.StatusCode != 200 || strings.Contains(a.Text, "cheapestNightlyMinor") || len(a.list.Degraded) != 1 {
		t.Errorf("%d %s", a.StatusCode, a.Text)
	}
}

func TestFacetsAreShared(t *testing.T) {
	h := newHouse(t)
	a := h.do("GET", "/facets?country=AF&locale=fr&currency=EUR", "", "Cookie", "gms_id=whatever")
	if a.StatusCode != 200 || a.Cookie() != "" || !strings.Contains(a.Text, "wifi (fr)") {
		t.Fatalf("%d %s", a.StatusCode, a.Text)
	}
	if got := a.Header.Get("Cache-Control") + " | " + a.Header.Get("Vary"); got != "public, max-age=15, s-maxage=300, stale-while-revalidate=60 | Accept-Encoding" {
		t.Errorf("with locale and currency in the URL: %s", got)
	}
	a = h.do("GET", "/facets?country=AF", "", "Accept-Language", "ru")
	if got := a.Header.Get("Vary"); got != "Accept-Language, X-Currency, Accept-Encoding" || !strings.Contains(a.Text, "wifi (ru)") {
		t.Errorf("%s: %s", got, a.Text)
	}
	calls := h.up.Calls("facets")
	if a = h.do("GET", "/facets?country=af&locale=fr&currency=USD", ""); a.Header.Get("X-Cache") != "HIT" || h.up.Calls("facets") != calls {
		t.Errorf("the second is %s", a.Header.Get("X-Cache"))
	}
	h.up.Fail("search")
	for minute := 0; minute < 70 && (minute == 0 || a.Header.Get("X-Cache") == "HIT"); minute++ { // an hour, give or take a tenth
		h.Advance(time.Minute)
		a = h.do("GET", "/facets?country=AF&locale=fr&currency=EUR", "")
	}
	if got := a.Header.Get("Cache-Control"); a.Header.Get("X-Cache") != "STALE" || strings.Contains(got, "300") {
		t.Errorf("a stale answer is %s, %s", a.Header.Get("X-Cache"), got)
	}
}

func TestFacetsOfNowhere(t *testing.T) {
	h := newHouse(t)
	for range 2 {
		if a := h.do("GET", "/facets?country=AQ", ""); a.StatusCode != 404 || a.Header.Get("Cache-Control") != "no-store" {
			t.Errorf("%d %s", a.StatusCode, a.Text)
		}
	}
	if n := h.up.Calls("facets"); n != 1 {
		t.Errorf("asked %d times", n)
	}
}

func TestFacetsRefuseWhatTheyDoNotKnow(t *testing.T) {
	h := newHouse(t)
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
		a := h.do("GET", "/facets"+query, "")
		if a.StatusCode < 400 || a.StatusCode > 499 || len(a.Errors) == 0 || a.Errors[0].Field != want {
			t.Errorf("%s: %d %s", query, a.StatusCode, a.Text)
		}
	}
	if n := h.up.Calls("facets"); n != 0 {
		t.Errorf("asked %d times", n)
	}
}
