package detail

import (
	"fmt"
	"testing"
	"time"

	"melmastoon.ghasi.io/bff-consumer/shared/testkit/functest"
	"melmastoon.ghasi.io/bff-consumer/shared/web"
)

const availabilityURL = hotelPath + "/availability?from=2026-12-01&to=2026-12-31"

func TestAvailability_ComposesThenServesFromCache(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	a := h.mustGet(availabilityURL + "&locale=ru&currency=EUR")
	if a.cacheState() != "MISS" || a.PropertyID != kabulPropertyID || a.From != "2026-12-01" || a.To != "2026-12-31" || len(a.Days) != 2 || a.degradedParts() != "" {
		t.Errorf(`got %s %s; want X-Cache = "MISS", PropertyID = %v, From = "2026-12-01", To = "2026-12-31", len(Days) = 2, degraded = ""`, a.cacheState(), a.Text, kabulPropertyID)
	}
	if d := a.Days[0]; !d.Available || d.CheapestMinor != "450000" || d.Currency != "AFN" || d.IsStale {
		t.Errorf(`got %+v; want Available, CheapestMinor = "450000", Currency = "AFN", not IsStale`, d)
	}
	if got := a.Header.Get("Cache-Control") + " | " + a.Header.Get("Vary"); got != cacheControlFull+" | Accept-Encoding" {
		t.Errorf("got Cache-Control | Vary %s", got)
	}
	if h.upstreams.lastAvailabilityQuery != "adults=2&children=0&from=2026-12-01&rooms=1&to=2026-12-31" {
		t.Errorf("got upstream query %s; want the defaults", h.upstreams.lastAvailabilityQuery)
	}
	calls := h.upstreams.Calls()
	for name, path := range map[string]string{"another language": availabilityURL + "&locale=en&currency=AFN", "no preferences": availabilityURL, "defaults in the URL": availabilityURL + "&rooms=1&adults=2&children=0"} {
		t.Run(name, func(t *testing.T) {
			if again := h.mustGet(path); again.cacheState() != "HIT" || again.Text != a.Text || again.Header.Get("ETag") != a.Header.Get("ETag") {
				t.Errorf(`got %s; want X-Cache = "HIT", body = %v, ETag = %v`, again.cacheState(), a.Text, a.Header.Get("ETag"))
			}
		})
	}
	if h.upstreams.Calls() != calls {
		t.Errorf("got %d further calls; want 0", h.upstreams.Calls()-calls)
	}
	if got := h.mustGet(availabilityURL).Header.Get("Vary"); got != "Accept-Language, X-Currency, Accept-Encoding" {
		t.Errorf("without locale and currency in the URL: got Vary %s", got)
	}
	for name, path := range map[string]string{
		"from": hotelPath + "/availability?from=2026-12-02&to=2026-12-31", "to": hotelPath + "/availability?from=2026-12-01&to=2026-12-30",
		"adults": availabilityURL + "&adults=3", "children": availabilityURL + "&children=1", "rooms": availabilityURL + "&rooms=2",
	} {
		if a := h.mustGet(path); a.cacheState() != "MISS" {
			t.Errorf("another %s: got %s; want MISS", name, a.cacheState())
		}
	}
}

func TestAvailability_ValidatesLimitBoundaries(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	span := func(ahead, days int) string {
		from := h.Now().AddDate(0, 0, ahead)
		return fmt.Sprintf("from=%s&to=%s", from.Format(time.DateOnly), from.AddDate(0, 0, days-1).Format(time.DateOnly))
	}
	for name, c := range map[string]struct{ query, field, code string }{
		"today":       {span(0, 1), "", ""},
		"yesterday":   {span(-1, 2), "from", "past"},
		"one day":     {span(5, 1), "", ""},
		"no day":      {span(5, 0), "to", "reversed"},
		"a year back": {span(5, -364), "to", "reversed"},
		"61 days":     {span(5, 61), "", ""},
		"62 days":     {span(5, 62), "", ""},
		"63 days":     {span(5, 63), "to", "too-long"},
		"499 ahead":   {span(499, 62), "", ""},
		"500 ahead":   {span(500, 62), "", ""},
		"501 ahead":   {span(501, 1), "from", "too-far"},
		"16 adults":   {span(5, 2) + "&adults=16", "", ""},
		"17 adults":   {span(5, 2) + "&adults=17", "adults", "out-of-range"},
		"1 adult":     {span(5, 2) + "&adults=1", "", ""},
		"no adult":    {span(5, 2) + "&adults=0", "adults", "out-of-range"},
		"10 children": {span(5, 2) + "&children=10", "", ""},
		"11 children": {span(5, 2) + "&children=11", "children", "out-of-range"},
		"-1 children": {span(5, 2) + "&children=-1", "children", "out-of-range"},
		"8 rooms":     {span(5, 2) + "&adults=8&rooms=8", "", ""},
		"9 rooms":     {span(5, 2) + "&adults=9&rooms=9", "rooms", "out-of-range"},
		"no room":     {span(5, 2) + "&rooms=0", "rooms", "out-of-range"},
	} {
		t.Run(name, func(t *testing.T) {
			a := h.get(hotelPath + "/availability?" + c.query)
			switch {
			case c.field == "":
				if a.StatusCode != 200 {
					t.Errorf("got %d %s; want status 200", a.StatusCode, a.Text)
				}
			case a.StatusCode != 422 || len(a.Errors) != 1 || a.Errors[0].Field != c.field || a.Errors[0].Code != c.code:
				t.Errorf("got %d %s; want status 422, len(Errors) = 1, Errors[0].Field = %v, Errors[0].Code = %v", a.StatusCode, a.Text, c.field, c.code)
			}
		})
	}
}

func TestAvailability_MalformedQueryNamesParameter(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	for query, fields := range map[string]string{
		"":                                                          "from required, to required",
		"from=2026-12-01":                                           "to required",
		"to=2026-12-01":                                             "from required",
		"from=&to=2026-12-01":                                       "from date",
		"from=2026-12-01&to=tomorrow":                               "to date",
		"from=2026-02-30&to=2026-12-01":                             "from date",
		"from=2026-12-1&to=2026-12-01":                              "from date",
		"from=01-12-2026&to=02-12-2026":                             "from date, to date",
		"from=2026-12-01T00:00&to=2026-12-02":                       "from date",
		"from=2026-12-01&to=2026-12-02%20":                          "to date",
		"from=%2B026-12-01&to=2026-12-02":                           "from date",
		"from=0000-12-01&to=2026-12-02":                             "from date",
		"from=9999-12-31&to=9999-12-31":                             "from too-far",
		"from=۲۰۲۶-12-01&to=2026-12-02":                             "from date",
		"from=2026-12-01&to=2026-12-02&adults=two":                  "adults malformed",
		"from=2026-12-01&to=2026-12-02&adults=":                     "adults malformed",
		"from=2026-12-01&to=2026-12-02&adults=%2B2":                 "adults malformed",
		"from=2026-12-01&to=2026-12-02&adults=02":                   "adults malformed",
		"from=2026-12-01&to=2026-12-02&adults=2.0":                  "adults malformed",
		"from=2026-12-01&to=2026-12-02&adults=1e1":                  "adults malformed",
		"from=2026-12-01&to=2026-12-02&rooms=99999999999999999999":  "rooms malformed",
		"from=2026-12-01&to=2026-12-02&children=%D9%A1":             "children malformed",
		"from=2026-12-01&to=2026-12-02&children=x&rooms=y&adults=z": "adults malformed, children malformed, rooms malformed",
		"from=2026-12-01&from=2026-12-02&to=2026-12-03":             "from duplicate",
		"from=2026-12-01&to=2026-12-02&childrenAges=4":              "childrenAges unknown",
		"from=2026-12-01&to=2026-12-02&From=2026-12-01":             "From unknown",
		"from=2026-12-01&to=2026-12-02&locale=xx":                   "locale not-supported",
		"from=2026-12-01&to=2026-12-02&_=1763632800":                "_ unknown",
		"from=2026-12-02&to=2026-12-01&adults=0":                    "to reversed",
		"from=2020-01-01&to=2020-01-02":                             "from past",
	} {
		t.Run(query, func(t *testing.T) {
			a := h.get(hotelPath + "/availability?" + query)
			var got string
			for i, e := range a.Errors {
				if i > 0 {
					got += ", "
				}
				got += e.Field + " " + e.Code
			}
			if a.StatusCode != 422 || got != fields {
				t.Errorf("%d %s, want %s", a.StatusCode, got, fields)
			}
		})
	}
	if n := h.upstreams.Calls(); n != 0 {
		t.Errorf("got %d upstream calls; want 0", n)
	}
}

func TestAvailability_UnknownHotelIsCachedAs404(t *testing.T) {
	t.Parallel()
	for _, service := range []string{"search", "property"} {
		t.Run(service, func(t *testing.T) {
			t.Parallel()
			h := newHarness(t)
			h.upstreams.NotFound(service)
			for range 3 {
				if a := h.get(availabilityURL); a.StatusCode != 404 || a.Header.Get("Cache-Control") != "no-store" {
					t.Errorf(`got %d %s; want status 404, Cache-Control = "no-store"`, a.StatusCode, a.Text)
				}
			}
			if n := h.upstreams.Calls("availability"); n != 1 {
				t.Errorf("got %d calls; want 1", n)
			}
			h.upstreams.Recover(service)
			h.Advance(31 * time.Second)
			h.mustGet(availabilityURL)
		})
	}
}

func TestAvailability_SearchFailureServesStaleThen503(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.mustGet(availabilityURL)
	h.upstreams.Fail("search")
	h.Advance(70 * time.Second)
	a := h.mustGet(availabilityURL)
	if a.cacheState() != "STALE" || !a.Days[0].IsStale || a.Days[1].IsStale || a.Header.Get("Cache-Control") != cacheControlShort {
		t.Errorf("with a stored answer: got %s %s %s; want STALE with a stale price", a.cacheState(), a.Header.Get("Cache-Control"), a.Text)
	}
	h.Advance(10 * time.Minute)
	if a := h.get(availabilityURL); a.StatusCode != 503 || a.Header.Get("Retry-After") == "" {
		t.Errorf("after the answer expired: got %d %s; want 503 with Retry-After", a.StatusCode, a.Text)
	}
}

func TestAvailability_SearchTimeoutAnswers504(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.upstreams.Hang("search")
	began := time.Now()
	if a := h.get(availabilityURL); a.StatusCode != 504 || time.Since(began) > web.Budget+functest.SlackTime {
		t.Errorf("got %d after %s: %s; want 504 within the budget", a.StatusCode, time.Since(began), a.Text)
	}
}

func TestAvailability_PropertyFailureDegrades(t *testing.T) {
	t.Parallel()
	for _, fault := range []string{"fails", "hangs"} {
		t.Run(fault, func(t *testing.T) {
			t.Parallel()
			h := newHarness(t)
			if fault == "fails" {
				h.upstreams.Fail("property")
			} else {
				h.upstreams.Hang("property")
			}
			began := time.Now()
			a := h.mustGet(availabilityURL)
			if a.degradedParts() != "property" || len(a.Days) != 2 || a.Header.Get("Cache-Control") != cacheControlShort || time.Since(began) > web.Budget+functest.SlackTime {
				t.Errorf("got %s after %s: %s; want days, property degraded", a.Header.Get("Cache-Control"), time.Since(began), a.Text)
			}
			h.upstreams.Recover("property")
			h.Advance(17 * time.Second)
			// the breakers of a new instance are closed
			if a := h.newInstance().mustGet(availabilityURL); a.degradedParts() != "" {
				t.Errorf("after recovery: got %s; want nothing degraded", a.Text)
			}
		})
	}
}

func TestAvailability_PricesExpireAfterOneMinute(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.mustGet(availabilityURL)
	for range 70 {
		h.Advance(time.Second)
		h.upstreams.Fail("search") // the answer comes from the cache
		a := h.mustGet(availabilityURL)
		if age := h.Now().Sub(time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)); a.Days[0].IsStale != (age > time.Minute) {
			t.Fatalf("after %s: got %s %s; want isStale = %t", age, a.cacheState(), a.Text, age > time.Minute)
		}
		h.upstreams.Recover("search")
	}
}
