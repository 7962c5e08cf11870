package detail

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
)

const (
	hotelPath         = "/hotels/" + kabulPropertyID
	detailURL         = hotelPath + "?locale=fa-AF&currency=AFN"
	cacheControlFull  = "public, max-age=15, s-maxage=300, stale-while-revalidate=60"
	cacheControlShort = "public, max-age=15, s-maxage=15"
)

func TestDetail_ComposesThenServesFromCache(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	a := h.mustGet(detailURL)
	if a.cacheState() != "MISS" || a.Locale != "fa-AF" || a.Currency != "AFN" || a.degradedParts() != "" {
		t.Errorf(`got %s %s; want X-Cache = "MISS", Locale = "fa-AF", Currency = "AFN", degraded = ""`, a.cacheState(), a.Text)
	}
	if a.Property.PropertyID != kabulPropertyID || a.Property.Name.Default != "Hotel One" || !strings.Contains(a.Text, "In fa-AF.") {
		t.Errorf("property: got %s", a.Text)
	}
	if a.Property.GuestRating == nil || a.PopularitySignals == nil || a.PopularitySignals.BookedLast24h != 12 || len(a.SimilarProperties) != 4 {
		t.Errorf("search-aggregation: got %s; want rating, popularity and 4 similar hotels", a.Text)
	}
	if !slices.Equal(a.Property.Badges, []string{"crossRegionDelivery", "shariaCompliant"}) {
		t.Errorf("got badges %v; want crossRegionDelivery, shariaCompliant", a.Property.Badges)
	}
	if a.BrandPeek.Neutral || a.BrandPeek.PrimaryColor != "#aabbcc" {
		t.Errorf("theme-config: got %s; want the brand", a.Text)
	}
	if r := a.CheapestRateSnapshot; r == nil || r.CheapestNightlyMinor != "450000" || r.IsStale || len(a.PriceCalendarPreview) != 7 {
		t.Errorf("pricing: got %s; want a fresh rate and 7 days", a.Text)
	}
	if a.HandoffHint.URL != "https://slug-1.melmastoon.ghasi.io/book" || a.HandoffHint.TTLSeconds != 1800 {
		t.Errorf("got %+v; want the booking page of slug-1 for 1800 s", a.HandoffHint)
	}
	if got := fmt.Sprint(h.upstreams.Calls("property"), h.upstreams.Calls("hotel"), h.upstreams.Calls("pricing"), h.upstreams.Calls("theme")); got != "1 1 1 5" {
		t.Errorf("calls to property, search, pricing and theme: got %s; want 1 1 1 5", got)
	}
	calls := h.upstreams.Calls()
	again := h.mustGet(detailURL)
	if again.cacheState() != "HIT" || again.Text != a.Text || h.upstreams.Calls() != calls {
		t.Errorf("second answer: got %s after %d calls; want HIT after 0", again.cacheState(), h.upstreams.Calls()-calls)
	}
}

func TestDetail_QuotesDefaultStay(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	a := h.mustGet(detailURL)
	if d := a.DefaultStay.Dates; d.CheckIn != "2026-11-21" || d.CheckOut != "2026-11-22" || a.PriceCalendarPreview[0].Date != "2026-11-21" || a.PriceCalendarPreview[6].Date != "2026-11-27" {
		t.Errorf(`got %s; want CheckIn = "2026-11-21", CheckOut = "2026-11-22", PriceCalendarPreview[0].Date = "2026-11-21", PriceCalendarPreview[6].Date = "2026-11-27"`, a.Text)
	}
	got := fmt.Sprint(h.upstreams.lastQuoteRequest)
	want := fmt.Sprintf("map[calendar:map[days:7 from:2026-11-21] currency:AFN dates:map[checkIn:2026-11-21 checkOut:2026-11-22] locale:fa-AF "+
		"occupancy:map[adults:2 children:0 rooms:1] properties:[map[propertyId:%s tenantId:%s]]]", kabulPropertyID, tenantID(1))
	if got != want {
		t.Errorf("quote request: got %s\nwant %s", got, want)
	}
	h.Advance(12 * time.Hour) // the next day: the default stay is tomorrow's night, also with a cached page
	if a = h.mustGet(detailURL); a.DefaultStay.Dates.CheckIn != "2026-11-22" || a.PriceCalendarPreview[0].Date != "2026-11-22" {
		t.Errorf(`got %s; want DefaultStay.Dates.CheckIn = "2026-11-22", PriceCalendarPreview[0].Date = "2026-11-22"`, a.Text)
	}
}

func TestDetail_CacheHitUsesOneRedisRoundTrip(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	days := hotelPath + "/availability?from=2026-12-01&to=2026-12-31"
	for _, path := range []string{detailURL, days} {
		t.Run(path, func(t *testing.T) {
			h.mustGet(path)
			queries, calls := h.Deps.DB.Stat().AcquireCount(), h.upstreams.Calls()
			h.RoundTrips.TakeCount()
			if a := h.mustGet(path); a.cacheState() != "HIT" {
				t.Fatalf("not warm: %s", a.cacheState())
			}
			if n := h.RoundTrips.TakeCount(); n != 1 {
				t.Errorf("got %d Redis round trips; want 1", n)
			}
			if n := h.Deps.DB.Stat().AcquireCount() - queries; n != 0 {
				t.Errorf("got %d uses of Postgres; want 0", n)
			}
			if n := h.upstreams.Calls() - calls; n != 0 {
				t.Errorf("got %d upstream calls; want 0", n)
			}
		})
	}
}

func TestDetail_DependsOnlyOnURLLocaleAndCurrency(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	base := h.mustGet(detailURL)
	for name, headers := range map[string][]string{
		"a cookie":               {"Cookie", "gms_id=gms_01ARZ3NDEKTSV4RRFFQ69G5FAV"},
		"another language":       {"Accept-Language", "ru"},
		"another currency":       {"X-Currency", "EUR"},
		"an unknown currency":    {"X-Currency", "XXX"},
		"a country":              {"X-Client-Geo-Country", "IR"},
		"a campaign":             {"X-Campaign-Source", "autumn"},
		"an agent and an origin": {"User-Agent", "curl/8", "Origin", "https://elsewhere.example"},
		"no tracking":            {"DNT", "1", "Sec-GPC", "1"},
	} {
		t.Run(name, func(t *testing.T) {
			a := h.mustGet(detailURL, headers...)
			if a.Text != base.Text || a.Header.Get("ETag") != base.Header.Get("ETag") || a.cacheState() != "HIT" {
				t.Errorf(`got %s %s; want body = %v, ETag = %v, X-Cache = "HIT"`, a.cacheState(), a.Text, base.Text, base.Header.Get("ETag"))
			}
			if got := a.Header.Get("Cache-Control") + " | " + a.Header.Get("Vary"); got != cacheControlFull+" | Accept-Encoding" {
				t.Errorf("got %q; want %q", got, cacheControlFull+" | Accept-Encoding")
			}
		})
	}
	for name, path := range map[string]string{"locale": hotelPath + "?locale=ru&currency=AFN", "currency": hotelPath + "?locale=fa-AF&currency=EUR"} {
		if a := h.mustGet(path); a.cacheState() != "MISS" || a.Header.Get("ETag") == base.Header.Get("ETag") {
			t.Errorf("another %s: got %s; want MISS with another ETag", name, a.cacheState())
		}
	}
}

func TestDetail_HeadersSelectLocaleAndCurrency(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	for name, c := range map[string]struct {
		path, locale, currency, vary string
		headers                      []string
	}{
		"neither":         {hotelPath, "en", "USD", "Accept-Language, X-Currency, Accept-Encoding", nil},
		"both by headers": {hotelPath, "ru", "EUR", "Accept-Language, X-Currency, Accept-Encoding", []string{"Accept-Language", "ru-RU, en;q=0.5", "X-Currency", "EUR"}},
		"one in the URL":  {hotelPath + "?locale=ar", "ar", "PKR", "Accept-Language, X-Currency, Accept-Encoding", []string{"Accept-Language", "ru", "X-Currency", "PKR"}},
		"both in the URL": {detailURL, "fa-AF", "AFN", "Accept-Encoding", nil},
		"a cookie":        {hotelPath, "en", "USD", "Accept-Language, X-Currency, Accept-Encoding", []string{"Cookie", "gms_id=gms_01ARZ3NDEKTSV4RRFFQ69G5FAV"}},
		"a country":       {hotelPath, "en", "USD", "Accept-Language, X-Currency, Accept-Encoding", []string{"X-Client-Geo-Country", "AF"}},
	} {
		t.Run(name, func(t *testing.T) {
			a := h.mustGet(c.path, c.headers...)
			if a.Locale != c.locale || a.Currency != c.currency || a.Header.Get("Vary") != c.vary || a.Header.Get("Cache-Control") != cacheControlFull {
				t.Errorf("got %s %s, %v; want Locale = %v, Currency = %v, Vary = %v, Cache-Control = %v", a.Locale, a.Currency, a.Header, c.locale, c.currency, c.vary, cacheControlFull)
			}
		})
	}
}

func TestDetail_UpstreamRequestsContainNoGuestData(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.mustGet(detailURL, "Cookie", "gms_id=gms_01ARZ3NDEKTSV4RRFFQ69G5FAV", "User-Agent", "canary", "X-Forwarded-For", "203.0.113.77")
	for _, name := range []string{"X-User-Bucket", "X-Tenant-Id", "Cookie", "X-Forwarded-For"} {
		t.Run(name, func(t *testing.T) {
			if v := h.upstreams.LastHeader().Get(name); v != "" {
				t.Errorf("got %q; want no header", v)
			}
		})
	}
	if v := h.upstreams.LastHeader().Get("X-Request-Id"); v == "" {
		t.Error("got no X-Request-Id")
	}
	for _, canary := range []string{"canary", "203.0.113", "01ARZ3NDEKTSV4RRFFQ69G5FAV", kabulPropertyID} {
		if strings.Contains(h.Log.String(), canary) {
			t.Errorf("found %q in the log", canary)
		}
	}
}

func TestDetail_UnknownHotelIsCachedFor30Seconds(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	unknown := "/hotels/" + propertyID(99)
	for range 3 {
		a := h.get(unknown)
		if a.StatusCode != 404 || a.Code != "MELMASTOON.BFF.CONSUMER.RESOURCE_NOT_FOUND" || a.Header.Get("Cache-Control") != "no-store" || a.Header.Get("ETag") != "" {
			t.Errorf(`got %d %s; want status 404, code = "MELMASTOON.BFF.CONSUMER.RESOURCE_NOT_FOUND", Cache-Control = "no-store", ETag = ""`, a.StatusCode, a.Text)
		}
	}
	if n := h.upstreams.Calls("property"); n != 1 {
		t.Errorf("got %d calls of property-service; want 1", n)
	}
	h.Advance(29 * time.Second)
	h.get(unknown)
	if n := h.upstreams.Calls("property"); n != 1 {
		t.Errorf("within 30 s: got %d calls; want 1", n)
	}
	h.Advance(2 * time.Second)
	h.get(unknown)
	if n := h.upstreams.Calls("property"); n != 2 {
		t.Errorf("after 30 s: got %d calls; want 2", n)
	}
	if n := h.upstreams.Calls("pricing") + h.upstreams.Calls("theme"); n != 0 {
		t.Errorf("got %d calls of pricing and theme-config; want 0", n)
	}
}

func TestDetail_CacheHitRefreshesRates(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.mustGet(detailURL)
	properties := h.upstreams.Calls("property")
	for second := 10; second <= 260; second += 10 { // TTL 5 min, jitter −10 %
		h.Advance(10 * time.Second)
		if second == 200 {
			h.upstreams.Fail("pricing")
		}
		a := h.mustGet(detailURL)
		if a.cacheState() != "HIT" {
			t.Fatalf("after %d s: got %s; want HIT", second, a.cacheState())
		}
		r := a.CheapestRateSnapshot
		age := h.Now().Sub(r.CapturedAt)
		if age > time.Minute && !r.IsStale || r.IsStale != a.PriceCalendarPreview[0].IsStale {
			t.Fatalf("after %d s: got a rate of age %s with isStale %t", second, age, r.IsStale)
		}
		if want := map[bool]string{false: cacheControlFull, true: cacheControlShort}[r.IsStale]; a.Header.Get("Cache-Control") != want {
			t.Fatalf("after %d s, stale %t: got %s; want %s", second, r.IsStale, a.Header.Get("Cache-Control"), want)
		}
	}
	if n := h.upstreams.Calls("property") - properties; n != 0 {
		t.Errorf("got %d further calls of property-service; want 0", n)
	}
	if n := h.upstreams.Calls("pricing"); n < 3 || n > 5 {
		t.Errorf("got %d answered calls of pricing; want 3 to 5", n)
	}
}

func TestDetail_CacheKeysMatchDataModel(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.mustGet(detailURL)
	h.mustGet(hotelPath + "/availability?from=2026-12-01&to=2026-12-02&adults=3&children=1&rooms=2")
	keys := h.RDB.Keys(t.Context(), "test:bff-consumer:cache:*").Val()
	for _, want := range []string{
		"test:bff-consumer:cache:detail:" + kabulPropertyID + ":fa-AF:AFN",
		"test:bff-consumer:cache:availability:" + kabulPropertyID + ":2026-12-01:2026-12-02:3-1-2",
		"test:bff-consumer:cache:property:" + kabulPropertyID,
	} {
		if !slices.Contains(keys, want) {
			t.Errorf("got keys %q; want %s among the keys", keys, want)
		}
	}
}

func TestDetail_InvalidURLMakesNoUpstreamCall(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	lower := strings.ToLower(kabulPropertyID)
	for path, c := range map[string]struct {
		status int
		field  string
	}{
		"/hotels/x":                             {422, "propertyId"},
		"/hotels/ppt_1":                         {422, "propertyId"},
		"/hotels/" + lower[:29] + "a":           {422, "propertyId"},
		"/hotels/" + kabulPropertyID + "0":      {422, "propertyId"},
		"/hotels/" + kabulPropertyID[:29] + "I": {422, "propertyId"},
		"/hotels/ppt_8" + kabulPropertyID[5:]:   {422, "propertyId"},
		"/hotels/tnt_" + kabulPropertyID[4:]:    {422, "propertyId"},
		"/hotels/PPT_" + kabulPropertyID[4:]:    {422, "propertyId"},
		"/hotels/%20" + kabulPropertyID:         {422, "propertyId"},
		"/hotels/" + kabulPropertyID + "%0A":    {422, "propertyId"},
		"/hotels/%D9%87%D8%AA%D9%84":            {422, "propertyId"},
		"/hotels/" + kabulPropertyID + "%2F..":  {422, "propertyId"},
		hotelPath + "?locale=xx":                {422, "locale"},
		hotelPath + "?locale=":                  {422, "locale"},
		hotelPath + "?currency=JPY":             {422, "currency"},
		hotelPath + "?currency=afn":             {422, "currency"},
		hotelPath + "?locale=en&locale=fr":      {422, "locale"},
		hotelPath + "?utm_source=x":             {422, "utm_source"},
		hotelPath + "?a;b":                      {400, "query"},
		hotelPath + "?locale=%zz":               {400, "query"},
		"/hotels/x/availability":                {422, "propertyId"},
		hotelPath + "/availability?from=x&to":   {422, "from"},
	} {
		t.Run(path, func(t *testing.T) {
			a := h.get(path)
			if a.StatusCode != c.status || len(a.Errors) == 0 || a.Errors[0].Field != c.field || a.Header.Get("Cache-Control") != "no-store" {
				t.Errorf(`got %d %s; want status %v, non-empty len(Errors), Errors[0].Field = %v, Cache-Control = "no-store"`, a.StatusCode, a.Text, c.status, c.field)
			}
		})
	}
	if n := h.upstreams.Calls(); n != 0 {
		t.Errorf("got %d calls; want 0", n)
	}
}

func TestDetail_AllowsOnlyGetAndHead(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	for _, method := range []string{"POST", "PUT", "DELETE", "PATCH", "OPTIONS"} {
		t.Run(method, func(t *testing.T) {
			if a := h.send(method, detailURL); a.StatusCode != http.StatusMethodNotAllowed || a.Header.Get("Allow") != "GET, HEAD" {
				t.Errorf(`got %d; want status %v, Allow = "GET, HEAD"`, a.StatusCode, http.StatusMethodNotAllowed)
			}
		})
	}
}
