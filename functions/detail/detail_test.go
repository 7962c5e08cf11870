package detail

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"melmastoon.ghasi.io/bff-consumer/shared/cache"
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
		t.Errorf("%s %s", a.state(), a.body)
	}
	if a.Property.PropertyID != kabul || a.Property.Name.Default != "Hotel One" || !strings.Contains(string(a.body), "In fa-AF.") {
		t.Errorf("property: %s", a.body)
	}
	if a.Property.GuestRating == nil || a.PopularitySignals == nil || a.PopularitySignals.BookedLast24h != 12 || len(a.SimilarProperties) != 4 {
		t.Errorf("search: %s", a.body)
	}
	if !slices.Equal(a.Property.Badges, []string{"crossRegionDelivery", "shariaCompliant"}) {
		t.Errorf("badges %v", a.Property.Badges)
	}
	if a.BrandPeek.Neutral || a.BrandPeek.PrimaryColor != "#aabbcc" {
		t.Errorf("theme: %s", a.body)
	}
	if r := a.CheapestRateSnapshot; r == nil || r.CheapestNightlyMinor != "450000" || r.IsStale || len(a.PriceCalendarPreview) != 7 {
		t.Errorf("pricing: %s", a.body)
	}
	if a.HandoffHint.URL != "https://slug-1.melmastoon.ghasi.io/book" || a.HandoffHint.TTLSeconds != 1800 {
		t.Errorf("%+v", a.HandoffHint)
	}
	if got := fmt.Sprint(h.up.properties.Load(), h.up.hotels.Load(), h.up.quotes.Load(), h.up.peeks.Load()); got != "1 1 1 5" {
		t.Errorf("calls to property, search, pricing and theme: %s", got)
	}
	calls := h.up.calls()
	again := h.ok(inURL)
	if again.state() != "HIT" || string(again.body) != string(a.body) || h.up.calls() != calls {
		t.Errorf("again: %s after %d calls", again.state(), h.up.calls()-calls)
	}
}

func TestTheDefaultStayIsWhatPricingIsAsked(t *testing.T) {
	h := newHouse(t)
	a := h.ok(inURL)
	if d := a.DefaultStay.Dates; d.CheckIn != "2026-11-21" || d.CheckOut != "2026-11-22" || a.PriceCalendarPreview[0].Date != "2026-11-21" || a.PriceCalendarPreview[6].Date != "2026-11-27" {
		t.Errorf("%s", a.body)
	}
	asked := fmt.Sprint(h.up.quoted)
	want := fmt.Sprintf("map[calendar:map[days:7 from:2026-11-21] currency:AFN dates:map[checkIn:2026-11-21 checkOut:2026-11-22] locale:fa-AF "+
		"occupancy:map[adults:2 children:0 rooms:1] properties:[map[propertyId:%s tenantId:%s]]]", kabul, tenantOf(1))
	if asked != want {
		t.Errorf("asked %s\nwant  %s", asked, want)
	}
	h.advance(12 * time.Hour) // another day: whatever was kept, the rate is for the night that is tomorrow now
	if a = h.ok(inURL); a.DefaultStay.Dates.CheckIn != "2026-11-22" || a.PriceCalendarPreview[0].Date != "2026-11-22" {
		t.Errorf("%s", a.body)
	}
}

func TestAHitIsOneRoundTripAndNothingElse(t *testing.T) {
	h := newHouse(t)
	days := address + "/availability?from=2026-12-01&to=2026-12-31"
	for _, path := range []string{inURL, days} {
		h.ok(path)
		queries, calls := h.parts.DB.Stat().AcquireCount(), h.up.calls()
		h.trips.Take()
		if a := h.ok(path); a.state() != "HIT" {
			t.Fatalf("not warm: %s", a.state())
		}
		if n := h.trips.Take(); n != 1 {
			t.Errorf("%s: %d Redis round trips", path, n)
		}
		if n := h.parts.DB.Stat().AcquireCount() - queries; n != 0 {
			t.Errorf("%s: %d uses of Postgres", path, n)
		}
		if n := h.up.calls() - calls; n != 0 {
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
		if string(a.body) != string(base.body) || a.Header.Get("ETag") != base.Header.Get("ETag") || a.state() != "HIT" {
			t.Errorf("%s: %s %s", name, a.state(), a.body)
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
		if v := h.up.headers.Get(name); v != "" {
			t.Errorf("%s: %s", name, v)
		}
	}
	if v := h.up.headers.Get("X-Request-Id"); v == "" {
		t.Error("the request has no id")
	}
	for _, canary := range []string{"canary", "203.0.113", "01ARZ3NDEKTSV4RRFFQ69G5FAV", kabul} {
		if strings.Contains(h.log.String(), canary) {
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
			t.Errorf("%d %s", a.StatusCode, a.body)
		}
	}
	if n := h.up.properties.Load(); n != 1 {
		t.Errorf("property-service was asked %d times", n)
	}
	h.advance(29 * time.Second)
	h.get(unknown)
	if n := h.up.properties.Load(); n != 1 {
		t.Errorf("within 30 s: asked %d times", n)
	}
	h.advance(2 * time.Second)
	h.get(unknown)
	if n := h.up.properties.Load(); n != 2 {
		t.Errorf("after 30 s: asked %d times", n)
	}
	if n := h.up.quotes.Load() + h.up.peeks.Load(); n != 0 {
		t.Errorf("pricing and theme were asked %d times about nothing", n)
	}
}

func TestAnOptionalPartThatFails(t *testing.T) {
	for _, how := range []string{"fails", "hangs", "breaks the contract"} {
		for _, part := range []string{"pricing", "search", "theme"} {
			t.Run(part+" "+how, func(t *testing.T) {
				h := newHouse(t)
				switch how {
				case "fails":
					h.up.fail(part)
				case "hangs":
					h.up.hang(part)
				default:
					if part == "theme" {
						t.Skip("a brand that is not a brand is in the tests of upstream")
					}
					h.up.command(func(u *upstreams) { u.price, u.booked = -1, -1 })
				}
				began := time.Now()
				a := h.ok(inURL)
				if took := time.Since(began); took > 2500*time.Millisecond {
					t.Errorf("answered after %s", took)
				}
				if how == "breaks the contract" {
					if a.lacks() != "search,pricing" || a.Degraded[0].Reason != "bad-response" {
						t.Errorf("%s", a.body)
					}
				} else if a.lacks() != part {
					t.Errorf("%s is not what is missing: %s", part, a.body)
				}
				if got := a.Header.Get("Cache-Control"); got != brief {
					t.Errorf("a partial answer is %s", got)
				}
				if has := a.CheapestRateSnapshot != nil && a.PriceCalendarPreview != nil; has != (a.lacks() != "pricing" && a.lacks() != "search,pricing") {
					t.Errorf("rate: %s", a.body)
				}
				if has := a.PopularitySignals != nil && a.SimilarProperties != nil; has != !strings.Contains(a.lacks(), "search") {
					t.Errorf("popularity: %s", a.body)
				}
				if a.BrandPeek.Neutral != (a.lacks() == "theme") {
					t.Errorf("brand: %s", a.body)
				}
				if hit := h.ok(inURL); hit.Header.Get("Cache-Control") != brief {
					t.Errorf("kept, it is %s", hit.Header.Get("Cache-Control"))
				}
				h.up.recover(part)
				h.up.command(func(u *upstreams) { u.price, u.booked = 450000, 12 })
				h.advance(map[bool]time.Duration{true: 3 * time.Second, false: 17 * time.Second}[a.lacks() == "pricing"])
				if a = h.beside().ok(inURL); a.lacks() != "" { // an instance whose breakers are closed
					t.Errorf("not mended: %s", a.body)
				}
				if got := a.Header.Get("Cache-Control"); got != stored {
					t.Errorf("whole again, it is %s", got)
				}
			})
		}
	}
}

func TestOptionalPartsLeaveTimeToPutThemTogether(t *testing.T) {
	for limit, want := range map[time.Duration]time.Duration{0: 0, time.Hour: time.Hour - spare} {
		ctx, now := t.Context(), time.Now()
		if limit > 0 {
			var cancel context.CancelFunc
			ctx, cancel = context.WithDeadline(ctx, now.Add(limit))
			defer cancel()
		}
		optional, cancel := sparing(ctx)
		deadline, limited := optional.Deadline()
		if limited != (want > 0) || limited && !deadline.Equal(now.Add(want)) {
			t.Errorf("%s became %s", limit, deadline.Sub(now))
		}
		if cancel(); optional.Err() == nil {
			t.Error("goes on when nobody waits any more")
		}
	}
}

func TestEveryOptionalPartMayBeMissingAtOnce(t *testing.T) {
	h := newHouse(t)
	for _, part := range []string{"pricing", "search", "theme"} {
		h.up.hang(part)
	}
	began := time.Now()
	a := h.ok(inURL)
	if took := time.Since(began); took > 2500*time.Millisecond || a.lacks() != "search,pricing,theme" {
		t.Errorf("%s after %s", a.body, took)
	}
}

func TestAHotelThatIsNotListedYetHasAPage(t *testing.T) {
	h := newHouse(t)
	h.up.notKnow("search")
	a := h.ok(inURL)
	if a.lacks() != "" || a.PopularitySignals != nil || a.SimilarProperties != nil || a.CheapestRateSnapshot == nil || a.Header.Get("Cache-Control") != stored {
		t.Errorf("%s", a.body)
	}
}

func TestASoldOutNightHasNoRateAndNothingIsMissing(t *testing.T) {
	h := newHouse(t)
	h.up.command(func(u *upstreams) { u.soldOut = true })
	for range 2 {
		a := h.ok(inURL)
		if a.CheapestRateSnapshot != nil || a.PriceCalendarPreview != nil || a.lacks() != "" || a.DefaultStay.Dates.CheckIn == "" || a.Header.Get("Cache-Control") != stored {
			t.Errorf("%s", a.body)
		}
	}
	h.up.command(func(u *upstreams) { u.soldOut = false })
	h.advance(61 * time.Second)
	if a := h.ok(inURL); a.CheapestRateSnapshot == nil || a.state() != "HIT" {
		t.Errorf("a room came back: %s %s", a.state(), a.body)
	}
}

func TestPropertyServiceFails(t *testing.T) {
	h := newHouse(t)
	h.ok(inURL)
	h.up.fail("property")
	h.advance(6 * time.Minute)
	a := h.ok(inURL)
	if a.state() != "STALE" || a.Header.Get("Cache-Control") != brief || !a.CheapestRateSnapshot.IsStale || !a.PriceCalendarPreview[3].IsStale {
		t.Errorf("after a good answer: %s, %s, %s", a.state(), a.Header.Get("Cache-Control"), a.body)
	}
	if a := h.get(address + "?locale=en&currency=AFN"); a.StatusCode != 503 || a.Code != "MELMASTOON.BFF.CONSUMER.UPSTREAM_UNAVAILABLE" ||
		a.Header.Get("Retry-After") == "" || a.Header.Get("Cache-Control") != "no-store" {
		t.Errorf("when there never was: %d %s", a.StatusCode, a.body)
	}
	h.advance(10 * time.Minute)
	if a := h.get(inURL); a.StatusCode != 503 {
		t.Errorf("when nothing is kept: %d %s", a.StatusCode, a.body)
	}
}

func TestPropertyServiceHangs(t *testing.T) {
	h := newHouse(t)
	h.up.hang("property")
	began := time.Now()
	a := h.get(inURL)
	if took := time.Since(began); took > 2600*time.Millisecond || a.StatusCode != 504 || a.Code != "MELMASTOON.BFF.CONSUMER.UPSTREAM_BUDGET_EXCEEDED" {
		t.Errorf("%d after %s: %s", a.StatusCode, took, a.body)
	}
}

func TestAPageStaysAHitWhileItsRatesStayYoung(t *testing.T) {
	h := newHouse(t)
	h.ok(inURL)
	properties := h.up.properties.Load()
	for second := 10; second <= 260; second += 10 { // TTL 5 min, jitter −10 %
		h.advance(10 * time.Second)
		if second == 200 {
			h.up.fail("pricing")
		}
		a := h.ok(inURL)
		if a.state() != "HIT" {
			t.Fatalf("after %d s: %s", second, a.state())
		}
		r := a.CheapestRateSnapshot
		age := h.now().Sub(r.CapturedAt)
		if age > time.Minute && !r.IsStale || r.IsStale != a.PriceCalendarPreview[0].IsStale {
			t.Fatalf("after %d s a rate of %s is shown as fresh", second, age)
		}
		if want := map[bool]string{false: stored, true: brief}[r.IsStale]; a.Header.Get("Cache-Control") != want {
			t.Fatalf("after %d s, stale %t: %s", second, r.IsStale, a.Header.Get("Cache-Control"))
		}
	}
	if n := h.up.properties.Load() - properties; n != 0 {
		t.Errorf("property-service was asked %d times again", n)
	}
	if n := h.up.quotes.Load(); n < 3 || n > 5 {
		t.Errorf("pricing answered %d times", n)
	}
}

func TestASuspendedTenantsHotelIsNotThere(t *testing.T) {
	h := newHouse(t)
	days := address + "/availability?from=2026-12-01&to=2026-12-02"
	h.ok(inURL)
	h.ok(days)
	unknown := h.get("/hotels/" + propertyID(99))
	h.suspend(tenantOf(1))
	h.trips.Take()
	for _, path := range []string{inURL, days, address + "?locale=ru&currency=AFN"} { // kept, kept, never made
		a := h.get(path)
		if a.StatusCode != 404 || a.Code != unknown.Code || strings.Contains(string(a.body), "Hotel One") {
			t.Errorf("%s: %d %s", path, a.StatusCode, a.body)
		}
		if a := h.get(path, "If-None-Match", "*"); a.StatusCode != 404 {
			t.Errorf("%s: %d to who has it", path, a.StatusCode)
		}
	}
	if err := h.others().Reinstate(t.Context(), tenantOf(1)); err != nil {
		t.Fatal(err)
	}
	h.ok(inURL)
	h.ok(days)
}

func TestASuspendedTenantsHotelIsNotSimilar(t *testing.T) {
	h := newHouse(t)
	before := h.ok(inURL)
	h.suspend(tenantOf(3))
	h.ok(inURL) // reads the set anew
	h.trips.Take()
	a := h.ok(inURL)
	if a.state() != "HIT" || len(a.SimilarProperties) != 3 || strings.Contains(string(a.body), tenantOf(3)) || a.Header.Get("Cache-Control") != stored {
		t.Errorf("%s %s", a.state(), a.body)
	}
	if n := h.trips.Take(); n != 1 {
		t.Errorf("%d Redis round trips", n)
	}
	if a.Header.Get("ETag") == before.Header.Get("ETag") {
		t.Error("another body has the same ETag")
	}
	if again := h.ok(inURL); again.Header.Get("ETag") != a.Header.Get("ETag") {
		t.Error("the same body has another ETag")
	}
	for _, n := range []int{2, 4, 5} { // 5 is tenant 0
		h.suspend(tenantOf(n))
	}
	h.ok(inURL)
	if a = h.ok(inURL); a.SimilarProperties != nil || strings.Contains(string(a.body), "similarProperties") {
		t.Errorf("%s", a.body)
	}
}

func TestRedisStopsAndComesBack(t *testing.T) {
	h := newHouse(t)
	days := address + "/availability?from=2026-12-01&to=2026-12-02"
	h.ok(inURL)
	h.redis.Stop()
	for _, path := range []string{inURL, days} {
		if a := h.ok(path); a.state() != "MISS" || a.lacks() != "" || a.Header.Get("ETag") == "" {
			t.Errorf("without Redis: %s %s", a.state(), a.body)
		}
	}
	h.redis.Start()
	h.eventually("Redis is used again", func() bool {
		h.ok(inURL)
		return h.ok(inURL).state() == "HIT"
	})
}

func TestASuspensionIsKnownWithoutRedis(t *testing.T) {
	h := newHouse(t)
	h.suspend(tenantOf(1))
	h.redis.Stop()
	if a := h.get(inURL); a.StatusCode != 404 {
		t.Errorf("%d %s", a.StatusCode, a.body)
	}
}

func TestManyGuestsOfAColdPageAreOneFanOut(t *testing.T) {
	h := newHouse(t)
	other := h.beside()
	arrived, letGo := h.up.hold("property")
	answers := make(chan *answer, 40)
	for n := range 40 {
		from := h
		if n%2 == 0 {
			from = other
		}
		go func() { answers <- from.get(inURL) }()
	}
	for name := range arrived {
		if name == "property" {
			break
		}
	}
	letGo()
	for range 40 {
		if a := <-answers; a.StatusCode != 200 || a.Property.PropertyID != kabul {
			t.Errorf("%d %s", a.StatusCode, a.body)
		}
	}
	if got := fmt.Sprint(h.up.properties.Load(), h.up.hotels.Load(), h.up.quotes.Load()); got != "1 1 1" {
		t.Errorf("calls to property, search and pricing: %s", got)
	}
}

// TestAnInvalidationBeatsAPageInTheMaking holds up one upstream after it has read its truth, changes the truth and
// empties the property's entries, for the page and the availability, made anew and made again.
func TestAnInvalidationBeatsAPageInTheMaking(t *testing.T) {
	days := address + "/availability?from=2026-12-01&to=2026-12-02"
	for _, c := range []struct{ path, holds string }{{inURL, "property"}, {inURL, "search"}, {inURL, "pricing"}, {days, "search"}, {days, "property"}} {
		for kind, age := range map[string]time.Duration{"absent": 0, "stale": 6 * time.Minute} {
			t.Run(fmt.Sprintf("%s/%s/%s", c.path[len(address):len(address)+3], c.holds, kind), func(t *testing.T) {
				h := newHouse(t)
				if age > 0 {
					h.ok(c.path)
					h.advance(age)
				}
				arrived, letGo := h.up.hold(c.holds)
				first := make(chan *answer, 1)
				go func() { first <- h.get(c.path) }()
				for name := range arrived {
					if name == c.holds {
						break
					}
				}
				h.up.command(func(u *upstreams) { u.name, u.price = "Hotel New", 1 })
				if _, err := h.parts.Cache.Bust(t.Context(), cache.Property(kabul)); err != nil {
					t.Fatal(err)
				}
				letGo()
				if a := <-first; a.StatusCode != 200 {
					t.Fatalf("%d %s", a.StatusCode, a.body)
				}
				a := h.ok(c.path)
				if a.state() != "MISS" || c.path == inURL && a.Property.Name.Default != "Hotel New" || c.path == days && a.Days[0].CheapestMinor != "1" {
					t.Errorf("afterwards: %s %s", a.state(), a.body)
				}
			})
		}
	}
}

func TestAChangedBrandOrNeighbourEmptiesThePage(t *testing.T) {
	h := newHouse(t)
	for name, tag := range map[string]string{
		"own tenant":       cache.Tenant(tenantOf(1)),
		"own property":     cache.Property(kabul),
		"similar tenant":   cache.Tenant(tenantOf(4)),
		"similar property": cache.Property(propertyID(2)),
	} {
		h.ok(inURL)
		if _, err := h.parts.Cache.Bust(context.Background(), tag); err != nil {
			t.Fatal(err)
		}
		if a := h.ok(inURL); a.state() != "MISS" {
			t.Errorf("%s changed: %s", name, a.state())
		}
	}
	h.ok(inURL)
	if _, err := h.parts.Cache.Bust(context.Background(), cache.Tenant("tnt_0000000000000000000000000Z")); err != nil {
		t.Fatal(err)
	}
	if a := h.ok(inURL); a.state() != "HIT" {
		t.Errorf("a stranger changed: %s", a.state())
	}
}

func TestUnknownHotelsAreForgottenWhenTheyAreListed(t *testing.T) {
	h := newHouse(t)
	h.up.notKnow("property")
	if a := h.get(inURL); a.StatusCode != 404 {
		t.Fatalf("%d", a.StatusCode)
	}
	h.up.recover("property")
	if _, err := h.parts.Cache.Bust(t.Context(), cache.Property(kabul)); err != nil {
		t.Fatal(err)
	}
	h.ok(inURL)
}

func TestTheKeysAreThoseOfTheDataModel(t *testing.T) {
	h := newHouse(t)
	h.ok(inURL)
	h.ok(address + "/availability?from=2026-12-01&to=2026-12-02&adults=3&children=1&rooms=2")
	keys := h.parts.Redis.Keys(t.Context(), "test:bff-consumer:cache:*").Val()
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
			t.Errorf("%s: %d %s", path, a.StatusCode, a.body)
		}
	}
	if n := h.up.calls(); n != 0 {
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
