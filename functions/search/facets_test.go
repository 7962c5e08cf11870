package search

import "testing"

func TestFacets_MatchingETagAnswers304(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	const url = "/facets?country=AF&locale=fr&currency=EUR"
	first := h.do("GET", url, "")
	tag := first.Header.Get("ETag")
	if first.StatusCode != 200 || tag == "" {
		t.Fatalf("%d, ETag %q", first.StatusCode, tag)
	}
	again := h.Do("GET", url, "", "", "If-None-Match", `"other", W/`+tag)
	if again.StatusCode != 304 || len(again.Text) != 0 || again.Header.Get("ETag") != tag || again.Header.Get("X-Cache") != "HIT" ||
		again.Header.Get("Cache-Control") != first.Header.Get("Cache-Control") || again.Header.Get("Vary") != first.Header.Get("Vary") {
		t.Errorf(`got %d %v %s; want status 304, no body, ETag = %v, X-Cache = "HIT", Cache-Control = %v, Vary = %v`, again.StatusCode, again.Header, again.Text, tag, first.Header.Get("Cache-Control"), first.Header.Get("Vary"))
	}
	if a := h.do("GET", "/facets?country=AF&locale=ru&currency=EUR", "", "If-None-Match", tag); a.StatusCode != 200 || a.Header.Get("ETag") == tag {
		t.Errorf("in another language: %d, ETag %s", a.StatusCode, a.Header.Get("ETag"))
	}
	if a := h.do("GET", "/facets?country=AQ", "", "If-None-Match", "*"); a.StatusCode != 404 || a.Header.Get("ETag") != "" {
		t.Errorf("of nowhere: %d, ETag %q", a.StatusCode, a.Header.Get("ETag"))
	}
}
