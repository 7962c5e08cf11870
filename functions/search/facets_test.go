package search

import (
	"strings"
	"testing"
	"time"
)

func TestFacets_MatchingETagAnswers304(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	const url = "/facets?country=AF&locale=fr&currency=EUR"
	first := h.do("GET", url, "")
	tag := first.Header.Get("ETag")
	if first.StatusCode != 200 || tag == "" {
		t.Fatalf("got %d, ETag %q; want 200 with an ETag", first.StatusCode, tag)
	}
	again := h.Do("GET", url, "", "", "If-None-Match", `"other", W/`+tag)
	if again.StatusCode != 304 || len(again.Text) != 0 || again.Header.Get("ETag") != tag || again.Header.Get("X-Cache") != "HIT" ||
		again.Header.Get("Cache-Control") != first.Header.Get("Cache-Control") || again.Header.Get("Vary") != first.Header.Get("Vary") {
		t.Errorf(`got %d %v %s; want status 304, no body, ETag = %v, X-Cache = "HIT", Cache-Control = %v, Vary = %v`, again.StatusCode, again.Header, again.Text, tag, first.Header.Get("Cache-Control"), first.Header.Get("Vary"))
	}
	if a := h.do("GET", "/facets?country=AF&locale=ru&currency=EUR", "", "If-None-Match", tag); a.StatusCode != 200 || a.Header.Get("ETag") == tag {
		t.Errorf("another language: got %d, ETag %s; want 200 and another ETag", a.StatusCode, a.Header.Get("ETag"))
	}
	if a := h.do("GET", "/facets?country=AQ", "", "If-None-Match", "*"); a.StatusCode != 404 || a.Header.Get("ETag") != "" {
		t.Errorf("unknown country: got %d, ETag %q; want 404 without ETag", a.StatusCode, a.Header.Get("ETag"))
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
		t.Errorf("with locale and currency in the URL: got %s", got)
	}
	a = h.do("GET", "/facets?country=AF", "", "Accept-Language", "ru")
	if got := a.Header.Get("Vary"); got != "Accept-Language, X-Currency, Accept-Encoding" || !strings.Contains(a.Text, "wifi (ru)") {
		t.Errorf(`got Vary %s: %s; want "Accept-Language, X-Currency, Accept-Encoding", body containing "wifi (ru)"`, got, a.Text)
	}
	calls := h.upstreams.Calls("facets")
	if a = h.do("GET", "/facets?country=af&locale=fr&currency=USD", ""); a.Header.Get("X-Cache") != "HIT" || h.upstreams.Calls("facets") != calls {
		t.Errorf("second answer: got %s; want HIT without a call", a.Header.Get("X-Cache"))
	}
	h.upstreams.Fail("search")
	// fresh for an hour ± 10 %
	for minute := 0; minute < 70 && (minute == 0 || a.Header.Get("X-Cache") == "HIT"); minute++ {
		h.Advance(time.Minute)
		a = h.do("GET", "/facets?country=AF&locale=fr&currency=EUR", "")
	}
	if got := a.Header.Get("Cache-Control"); a.Header.Get("X-Cache") != "STALE" || strings.Contains(got, "300") {
		t.Errorf("after an hour: got %s, %s; want STALE for at most 15 s at the edge", a.Header.Get("X-Cache"), got)
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
		t.Errorf("got %d calls; want 1", n)
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
		t.Errorf("got %d calls; want 0", n)
	}
}
