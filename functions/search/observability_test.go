package search

import (
	"strconv"
	"testing"

	"melmastoon.ghasi.io/bff-consumer/shared/testkit/otlptest"
)

func TestSearchList_TracesAndMetricsContainNoPersonalData(t *testing.T) {
	collector := otlptest.Open(t)
	h := newHarness(t)
	private := []string{
		"Accept-Language", "ps-AF", "X-Currency", "AFN", "X-Forwarded-For", "203.0.113.9", "X-Request-Id", "01ARZ3NDEKTSV4RRFFQ69G5FAV",
		"Referer", "https://www.example.com/canary-referer", "Baggage", "canary=baggage",
	}
	first := h.mustSearch(h.requestBody("Kabul"), private...)
	cookie := first.SessionCookie()
	h.mustSearch(h.requestBody("Kabul"), append(private, "Cookie", "gms_id="+cookie)...)
	refused := h.do("POST", "/search?h=canary-query", h.requestBody("Kabul"), private...)
	h.do("GET", "/facets?country=AF&canary=1", "", private...)
	h.do("GET", "/facets?country=AF", "", private...)
	h.Redis.Stop()
	h.mustSearch(h.requestBody("Herat"), private...)
	h.Flush()

	collector.AssertAbsent(t, cookie, "gms_", "Mozilla", "203.0.113", "192.0.2", "01ARZ3NDEKTSV4RRFFQ69G5FAV", "canary", "country=AF",
		"Kabul", "Herat", "ppt_", "tnt_", "450000", ":bff-consumer:", "cache:", "WHERE", "VALUES", first.body.SearchSessionID, first.body.QueryHash)
	const route = "/bff/consumer/v1/search"
	for _, c := range []struct {
		metric     string
		least      float64
		attributes []string
	}{
		{"http.server.request.duration", 1, []string{"http.route=" + route, "bff.cache.state=HIT", "http.response.status_code=200"}},
		{"http.server.request.duration", 2, []string{"http.route=" + route, "bff.cache.state=MISS"}},
		{"http.server.request.duration", 1, []string{"http.route=" + route, "http.response.status_code=" + strconv.Itoa(refused.StatusCode)}},
		{"http.client.request.duration", 2, []string{"peer.service=search"}},
		{"http.client.request.duration", 2, []string{"peer.service=pricing"}},
	} {
		if n := collector.Metric(c.metric, c.attributes...); n < c.least {
			t.Errorf("metric %s %q: got %v; want at least %v", c.metric, c.attributes, n, c.least)
		}
	}
	for name, least := range map[string]int{"POST " + route: 4, "PIPELINE": 4, "search": 2, "pricing": 2, "theme": 1, "begin": 4, "find": 3} {
		if n := len(collector.Spans(name)); n < least {
			t.Errorf("got %d spans %q; want at least %d", n, name, least)
		}
	}
	failed := 0
	for _, s := range collector.Spans("PIPELINE") {
		if otlptest.Attribute(s, "error.type") == "away" {
			failed++
		}
	}
	if failed == 0 {
		t.Error(`got no PIPELINE span with error.type "away" while Redis was stopped`)
	}
}
