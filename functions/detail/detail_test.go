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
	address = "/hotels/" + kabul
	inURL   = address + "?locale=fa-AF&currency=AFN"
	stored  = "public, max-age=15, s-maxage=300, stale-while-revalidate=60"
	brief   = "public, max-age=15, s-maxage=15"
)

func TestAPageIsComposedOfFourAndThenCached(t *testing.T) {
	h := newHouse(t)
	a := h.ok(inURL)
	if a.state() != "MISS" || a.Locale != "fa-AF" || a.Currency != "AFN" || a.lacks() != "" {
		t.Errorf("%s %s", a.state(), a.Text)
	}
	if a.Property.PropertyID != kabul || a.Property.Name.Default != "Hotel One" || !strings.Contains(a.Text, "In fa-AF.") {
		t.Errorf("property: %s", a.Text)
	}
	if a.Property.GuestRating == nil || a.PopularitySignals == nil || a.PopularitySignals.BookedLast24h != 12 || len(a.SimilarProperties) != 4 {
		t.Errorf("search: %s", a.Text)
	}
	if !slices.Equal(a.Property.Badges, []string{"crossRegionDelivery", "shariaCompliant"}) {
		t.Errorf("badges %v", a.Property.Badges)
	}
	if a.BrandPeek.Neutral || a.BrandPeek.PrimaryColor != "#aabbcc" {
		t.Errorf("theme: %s", a.Text)
	}
	if r := a.CheapestRateSnapshot; r == nil || r.CheapestNightlyMinor != "450000" || r.IsStale || len(a.PriceCalendarPreview) != 7 {
		t.Errorf("pricing: %s", a.Text)
	}
	if a.HandoffHint.URL != "https://slug-1.melmastoon.ghasi.io/book" || a.HandoffHint.TTLSeconds != 1800 {
		t.Errorf("%+v", a.HandoffHint)
	}
	if got := fmt.Sprint(h.up.Calls("property"), h.up.Calls("hotel"), h.up.Calls("pricing"), h.up.Calls("theme")); got != "1 1 1 5" {
		t.Errorf("calls to property, search, pricing and theme: %s", got)
	}
	calls := h.up.Calls()
	again := h.ok(inURL)
	if again.state() != "HIT" || again.Text != a.Text || h.up.Calls() != calls {
		t.Errorf("again: %s after %d calls", again.state(), h.up.Calls()-calls)
	}
}

func TestTheDefaultStayIsWhatPricingIsAsked(t *testing.T) {
	h := newHouse(t)
	a := h.ok(inURL)
	if d := a.DefaultStay.Dates; d.CheckIn != "2026-11-21" || d.CheckOut != "2026-11-22" || a.PriceCalendarPreview[0].Date != "2026-11-21" || a.PriceCalendarPreview[6].Date != "2026-11-27" {
		t.Errorf("%s", a.Text)
	}
	asked := fmt.Sprint(h.up.quoted)
	want := fmt.Sprintf("map[calendar:map[days:7 from:2026-11-21] currency:AFN dates:map[checkIn:2026-11-21 checkOut:2026-11-22] locale:fa-AF "+
		"occupancy:map[adults:2 children:0 rooms:1] properties:[map[propertyId:%s tenantId:%s]]]", kabul, tenantOf(1))
	if asked != want {
		t.Errorf("asked %s\nwant  %s", asked, want)
	}
	h.Advance(12 * time.Hour) // another day: whatever was kept, the rate is for the night that is tomorrow now
	if a = h.ok(inURL); a.DefaultStay.Dates.CheckIn != "2026-11-22" || a.PriceCalendarPreview[0].Date != "2026-11-22" {
		t.Errorf("%s", a.Text)
	}
}

func TestAHitIsOneRoundTripAndNothingElse(t *testing.T) {
	h := newHouse(t)
	days := address + "/availability?from=2026-12-01&to=2026-12-31"
	for _, path := range []string{inURL, days} {
		h.ok(path)
		queries, calls := h.Parts.DB.Stat().AcquireCount(), h.up.Calls()
		h.Trips.Take()
		if a := h.ok(path); a.state() != "HIT" {
			t.Fatalf("not warm: %s", a.state())
		}
		if n := h.Trips.Take(); n != 1 {
			t.Errorf("%s: %d Redis round trips", path, n)
		}
		if n := h.Parts.DB.Stat().AcquireCount() - queries; n != 0 {
			t.Errorf("%s: %d uses of Postgres", path, n)
		}
		if n := h.up.Calls() - calls; n != 0 {
			t.Errorf("%s: %d upstream calls", path, n)
		}
	}
}

func TestAPageDependsOnURLLocaleAndCurrencyAlone(t *testing.T) {
	h := newHouse(t)
	base := h.ok(inURL)
	for name, headers := range map[string][]string{
		"a cookie":               {"Cookie", "gms_id=gms_01ARZ3NDEKTSV4RRFFQ69G5FAV"},
		"another language":       {"Accept-Language", "ru"},
		"another currency":       {"X-Currency", "EUR"},
		"a currency of nowhere":  {"X-Currency", "XXX"},
		"a country":              {"X-Client-Geo-Country", "IR"},
		"a campaign":             {"X-Campaign-Source", "autumn"},
		"an agent and an origin": {"User-Agent", "curl/8", "Origin", "https://elsewhere.example"},
		"no tracking":            {"DNT", "1", "Sec-GPC", "1"},
	} {
		a := h.ok(inURL, headers...)
		if a.Text != base.Text || a.Header.Get("ETag") != base.Header.Get("ETag") || a.state() != "HIT" {
			t.Errorf("%s: %s %s", name, a.state(), a.Text)
		}
		if got := a.Header.Get("Cache-Control") + " | " + a.Header.Get("Vary"); got != stored+" | Accept-Encoding" {
			t.Errorf("%s: %s", name, got)
		}
	}
	for name, path := range map[string]string{"locale": address + "?locale=ru&currency=AFN", "currency": address + "?locale=fa-AF&currency=EUR"} {
		if a := h.ok(path); a.state() != "MISS" || a.Header.Get("ETag") == base.Header.Get("ETag") {
			t.Errorf("another %s: %s", name, a.state())
		}
	}
}

func TestWithoutLocaleAndCurrencyInTheURLTheHeadersSay(t *testing.T) {
	h := newHouse(t)
	for name, c := range map[string]struct {
		path, locale, currency, vary string
		headers                      []string
	}{
		"neither":         {address, "en", "USD", "Accept-Language, X-Currency, Accept-Encoding", nil},
		"both by headers": {address, "ru", "EUR", "Accept-Language, X-Currency, Accept-Encoding", []string{"Accept-Language", "ru-RU, en;q=0.5", "X-Currency", "EUR"}},
		"one in the URL":  {address + "?locale=ar", "ar", "PKR", "Accept-Language, X-Currency, Accept-Encoding", []string{"Accept-Language", "ru", "X-Currency", "PKR"}},
		"both in the URL": {inURL, "fa-AF", "AFN", "Accept-Encoding", nil},
		"a cookie":        {address, "en", "USD", "Accept-Language, X-Currency, Accept-Encoding", []string{"Cookie", "gms_id=gms_01ARZ3NDEKTSV4RRFFQ69G5FAV"}},
		"a country":       {address, "en", "USD", "Accept-Language, X-Currency, Accept-Encoding", []string{"X-Client-Geo-Country", "AF"}},
	} {
		a := h.ok(c.path, c.headers...)
		if a.Locale != c.locale || a.Currency != c.currency || a.Header.Get("Vary") != c.vary || a.Header.Get("Cache-Control") != stored {
			t.Errorf("%s: %s %s, %v", name, a.Locale, a.Currency, a.Header)
		}
	}
}

func TestUpstreamsAreToldNothingOfTheGuest(t *testing.T) {
	h := newHouse(t)
	h.ok(inURL, "Cookie", "gms_id=gms_01ARZ3NDEKTSV4RRFFQ69G5FAV", "User-Agent", "canary", "X-Forwarded-For", "203.0.113.77")
	for _, name := range []string{"X-User-Bucket", "X-Tenant-Id", "Cookie", "X-Forwarded-For"} {
		if v := h.up.Heard().Get(name); v != "" {
			t.Errorf("%s: %s", name, v)
		}
	}
	if v := h.up.Heard().Get("X-Request-Id"); v == "" {
		t.Error("the request has no id")
	}
	for _, canary := range []string{"canary", "203.0.113", "01ARZ3NDEKTSV4RRFFQ69G5FAV", kabul} {
		if strings.Contains(h.Log.String(), canary) {
			t.Errorf("%q in the log", canary)
		}
	}
}

func TestWhatAnUnknownHotelCosts(t *testing.T) {
	h := newHouse(t)
	unknown := "/hotels/" + propertyID(99)
	for range 3 {
		a := h.get(unknown)
		if a.StatusCode != 404 || a.Code != "MELMASTOON.BFF.CONSUMER.RESOURCE_NOT_FOUND" || a.Header.Get("Cache-Control") != "no-store" || a.Header.Get("ETag") != "" {
			t.Errorf("%d %s", a.StatusCode, a.Text)
		}
	}
	if n := h.up.Calls("property"); n != 1 {
		t.Errorf("property-service was asked %d times", n)
	}
	h.Advance(29 * time.Second)
	h.get(unknown)
	if n := h.up.Calls("property"); n != 1 {
		t.Errorf("within 30 s: asked %d times", n)
	}
	h.Advance(2 * time.Second)
	h.get(unknown)
	if n := h.up.Calls("property"); n != 2 {
		t.Errorf("after 30 s: asked %d times", n)
	}
	if n := h.up.Calls("pricing") + h.up.Calls("theme"); n != 0 {
		t.Errorf("pricing and theme were asked %d times about nothing", n)
	}
}

func TestAPageStaysAHitWhileItsRatesStayYoung(t *testing.T) {
	h := newHouse(t)
	h.ok(inURL)
	properties := h.up.Calls("property")
	for second := 10; second <= 260; second += 10 { // TTL 5 min, jitter −10 %
		h.Advance(10 * time.Second)
		if second == 200 {
			h.up.Fail("pricing")
		}
		a := h.ok(inURL)
		if a.state() != "HIT" {
			t.Fatalf("after %d s: %s", second, a.state())
		}
		r := a.CheapestRateSnapshot
		age := h.Now().Sub(r.CapturedAt)
		if age > time.Minute && !r.IsStale || r.IsStale != a.PriceCalendarPreview[0].IsStale {
			t.Fatalf("after %d s a rate of %s is shown as fresh", second, age)
		}
		if want := map[bool]string{false: stored, true: brief}[r.IsStale]; a.Header.Get("Cache-Control") != want {
			t.Fatalf("after %d s, stale %t: %s", second, r.IsStale, a.Header.Get("Cache-Control"))
		}
	}
	if n := h.up.Calls("property") - properties; n != 0 {
		t.Errorf("property-service was asked %d times again", n)
	}
	if n := h.up.Calls("pricing"); n < 3 || n > 5 {
		t.Errorf("pricing answered %d times", n)
	}
}

func TestTheKeysAreThoseOfTheDataModel(t *testing.T) {
	h := newHouse(t)
	h.ok(inURL)
	h.ok(address + "/availability?from=2026-12-01&to=2026-12-02&adults=3&children=1&rooms=2")
	keys := h.RDB.Keys(t.Context(), "test:bff-consumer:cache:*").Val()
	for _, want := range []string{
		"test:bff-consumer:cache:detail:" + kabul + ":fa-AF:AFN",
		"test:bff-consumer:cache:availability:" + kabul + ":2026-12-01:2026-12-02:3-1-2",
		"test:bff-consumer:cache:property:" + kabul,
	} {
		if !slices.Contains(keys, want) {
			t.Errorf("no %s in %q", want, keys)
		}
	}
}

func TestBadAddressesAreRefusedWithoutACall(t *testing.T) {
	h := newHouse(t)
	lower := strings.ToLower(kabul)
	for path, c := range map[string]struct {
		status int
		field  string
	}{
		"/hotels/x":                         {422, "propertyId"},
		"/hotels/ppt_1":                     {422, "propertyId"},
		"/hotels/" + lower[:29] + "a":       {422, "propertyId"},
		"/hotels/" + kabul + "0":            {422, "propertyId"},
		"/hotels/" + kabul[:29] + "I":       {422, "propertyId"},
		"/hotels/ppt_8" + kabul[5:]:         {422, "propertyId"},
		"/hotels/tnt_" + kabul[4:]:          {422, "propertyId"},
		"/hotels/PPT_" + kabul[4:]:          {422, "propertyId"},
		"/hotels/%20" + kabul:               {422, "propertyId"},
		"/hotels/" + kabul + "%0A":          {422, "propertyId"},
		"/hotels/%D9%87%D8%AA%D9%84":        {422, "propertyId"},
		"/hotels/" + kabul + "%2F..":        {422, "propertyId"},
		address + "?locale=xx":              {422, "locale"},
		address + "?locale=":                {422, "locale"},
		address + "?currency=JPY":           {422, "currency"},
		address + "?currency=afn":           {422, "currency"},
		address + "?locale=en&locale=fr":    {422, "locale"},
		address + "?utm_source=x":           {422, "utm_source"},
		address + "?a;b":                    {400, "query"},
		address + "?locale=%zz":             {400, "query"},
		"/hotels/x/availability":            {422, "propertyId"},
		address + "/availability?from=x&to": {422, "from"},
	} {
		a := h.get(path)
		if a.StatusCode != c.status || len(a.Errors) == 0 || a.Errors[0].Field != c.field || a.Header.Get("Cache-Control") != "no-store" {
			t.Errorf("%s: %d %s", path, a.StatusCode, a.Text)
		}
	}
	if n := h.up.Calls(); n != 0 {
		t.Errorf("%d calls", n)
	}
}

func TestOnlyGetAndHead(t *testing.T) {
	h := newHouse(t)
	for _, method := range []string{"POST", "PUT", "DELETE", "PATCH", "OPTIONS"} {
		if a := h.send(method, inURL); a.StatusCode != http.StatusMethodNotAllowed || a.Header.Get("Allow") != "GET, HEAD" {
			t.Errorf("%s: %d", method, a.StatusCode)
		}
	}
}
