package search

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"melmastoon.ghasi.io/bff-consumer/shared/event"
	"melmastoon.ghasi.io/bff-consumer/shared/pgtest"
)

// quiet turns sampling off, loud samples everybody.
const (
	quiet = `{"sampling":{"search.executed":0}}`
	loud  = `{"sampling":{"search.executed":1}}`
)

func TestASearchIsComposedAndThenCached(t *testing.T) {
	h := newHouse(t)
	first := h.find(h.request("Kabul"), "Accept-Language", "ps-AF", "X-Currency", "AFN")
	if got := first.Header.Get("X-Cache"); got != "MISS" {
		t.Errorf("the first answer is %s", got)
	}
	if first.list.Locale != "ps-AF" || first.list.Currency != "AFN" || first.list.ResultCount != 30 || len(first.list.Listings) != 3 {
		t.Errorf("%s", first.body)
	}
	card := first.list.Listings[0]
	if card.RateSnapshot == nil || card.RateSnapshot.CheapestNightlyMinor != "450000" || card.RateSnapshot.IsStale || card.BrandPeek.Neutral {
		t.Errorf("%+v", card)
	}
	if !slices.Equal(card.Badges, []string{"crossRegionDelivery", "shariaCompliant"}) {
		t.Errorf("badges %v", card.Badges)
	}
	calls := h.up.calls()
	second := h.find(h.request("Kabul"), "Accept-Language", "ps-AF", "X-Currency", "AFN", "Cookie", "gms_id="+first.cookie())
	if got := second.Header.Get("X-Cache"); got != "HIT" || h.up.calls() != calls {
		t.Errorf("the second answer is %s after %d further calls", got, h.up.calls()-calls)
	}
	if second.list.SearchSessionID != first.list.SearchSessionID {
		t.Errorf("the same search is %s and %s", first.list.SearchSessionID, second.list.SearchSessionID)
	}
	if got := second.Header.Get("Cache-Control"); got != "private, no-store" {
		t.Errorf("a personal answer is %s", got)
	}
}

func TestAWarmHitCostsTwoRoundTrips(t *testing.T) {
	h := newHouse(t)
	h.setFlags(quiet)
	cookie := "gms_id=" + h.find(h.request("Kabul")).cookie()
	h.find(h.request("Kabul"), "Cookie", cookie)
	queries := h.parts.DB.Stat().AcquireCount()
	calls := h.up.calls()
	h.trips.Take()
	if got := h.find(h.request("Kabul"), "Cookie", cookie).Header.Get("X-Cache"); got != "HIT" {
		t.Fatalf("not warm: %s", got)
	}
	if n := h.trips.Take(); n > 2 {
		t.Errorf("%d Redis round trips", n)
	}
	if n := h.parts.DB.Stat().AcquireCount() - queries; n != 0 {
		t.Errorf("%d uses of Postgres", n)
	}
	if n := h.up.calls() - calls; n != 0 {
		t.Errorf("%d upstream calls", n)
	}
}

func TestEqualQueriesShareAnEntry(t *testing.T) {
	h := newHouse(t)
	a := h.find(h.request("Kabul", `"occupancy"`, `"filters":{"amenities":["wifi","parking","wifi"],"starRating":[5,3],"cancellationFlexibility":"any"},"sortKey":"recommended","page":{"limit":20,"offset":0},"occupancy"`))
	b := h.find(h.request("  KABUL", `"occupancy"`, `"filters":{"starRating":[3,5],"amenities":["parking","wifi"]},"occupancy"`))
	if a.list.QueryHash != b.list.QueryHash || b.Header.Get("X-Cache") != "HIT" {
		t.Errorf("%s and %s, %s", a.list.QueryHash, b.list.QueryHash, b.Header.Get("X-Cache"))
	}
}

func TestDifferentQueriesNeverShareAnEntry(t *testing.T) {
	h := newHouse(t)
	base := h.find(h.request("Kabul"))
	for name, a := range map[string]*answer{
		"locale":    h.find(h.request("Kabul"), "Accept-Language", "fr"),
		"currency":  h.find(h.request("Kabul"), "X-Currency", "EUR"),
		"city":      h.find(h.request("Herat")),
		"sort":      h.find(h.request("Kabul", `"occupancy"`, `"sortKey":"price-asc","occupancy"`)),
		"occupancy": h.find(h.request("Kabul", `"adults":2`, `"adults":3`)),
		"filters":   h.find(h.request("Kabul", `"occupancy"`, `"filters":{"starRating":[5]},"occupancy"`)),
	} {
		if a.list.QueryHash == base.list.QueryHash || a.Header.Get("X-Cache") != "MISS" {
			t.Errorf("another %s: %s", name, a.Header.Get("X-Cache"))
		}
	}
	if page := h.find(h.request("Kabul", `"occupancy"`, `"page":{"offset":20},"occupancy"`)); page.Header.Get("X-Cache") != "MISS" || page.list.QueryHash != base.list.QueryHash {
		t.Errorf("another page: %s", page.Header.Get("X-Cache"))
	}
}

func TestWhatTheGuestChoseCostsOneTripMoreOnce(t *testing.T) {
	h := newHouse(t)
	h.setFlags(quiet)
	id := h.find(h.request("Kabul")).cookie()
	h.redisDo("HSET", h.parts.Keys.Session(id), "localePreference", "ar", "localeSource", "user-explicit")
	h.find(h.request("Kabul"), "Cookie", "gms_id="+id)
	h.trips.Take()
	a := h.find(h.request("Kabul"), "Cookie", "gms_id="+id)
	if n := h.trips.Take(); n > 2 || a.list.Locale != "ar" || a.Header.Get("X-Cache") != "HIT" {
		t.Errorf("%d round trips for %s in %s", n, a.Header.Get("X-Cache"), a.list.Locale)
	}
}

func TestPricingHangs(t *testing.T) {
	h := newHouse(t)
	h.up.command(func(u *upstreams) { u.hanging["pricing"] = true })
	began := time.Now()
	a := h.find(h.request("Kabul"))
	if took := time.Since(began); took > 2500*time.Millisecond {
		t.Errorf("answered after %s", took)
	}
	if len(a.list.Degraded) != 1 || a.list.Degraded[0].Part != "pricing" || a.list.Listings[0].RateSnapshot != nil {
		t.Errorf("%s", a.body)
	}
	h.up.command(func(u *upstreams) { u.hanging["pricing"] = false })
	h.advance(3 * time.Second)
	if a = h.find(h.request("Kabul")); len(a.list.Degraded) != 0 || a.list.Listings[0].RateSnapshot == nil {
		t.Errorf("not mended: %s", a.body)
	}
}

func TestThemeFails(t *testing.T) {
	h := newHouse(t)
	h.up.command(func(u *upstreams) { u.failing["theme"] = true })
	a := h.find(h.request("Kabul"))
	if len(a.list.Degraded) != 1 || a.list.Degraded[0].Part != "theme" || !a.list.Listings[0].BrandPeek.Neutral || a.list.Listings[0].RateSnapshot == nil {
		t.Errorf("%s", a.body)
	}
}

func TestSearchAggregationFails(t *testing.T) {
	h := newHouse(t)
	h.find(h.request("Kabul"))
	h.up.command(func(u *upstreams) { u.failing["search"] = true })
	h.advance(2 * time.Minute)
	a := h.find(h.request("Kabul"))
	if a.Header.Get("X-Cache") != "STALE" || !a.list.Listings[0].RateSnapshot.IsStale {
		t.Errorf("after a good answer: %s %s", a.Header.Get("X-Cache"), a.body)
	}
	h.advance(10 * time.Minute)
	if a := h.do("POST", "/search", h.request("Kabul")); a.StatusCode != 503 || a.list.Code != "MELMASTOON.BFF.CONSUMER.UPSTREAM_UNAVAILABLE" || a.Header.Get("Retry-After") == "" {
		t.Errorf("when nothing is kept: %d %s", a.StatusCode, a.body)
	}
	if a := h.do("POST", "/search", h.request("Herat")); a.StatusCode != 503 || a.cookie() != "" {
		t.Errorf("when there never was: %d %s", a.StatusCode, a.body)
	}
}

func TestSearchAggregationHangs(t *testing.T) {
	h := newHouse(t)
	h.up.command(func(u *upstreams) { u.hanging["search"] = true })
	began := time.Now()
	a := h.do("POST", "/search", h.request("Kabul"))
	if took := time.Since(began); took > 2600*time.Millisecond || a.StatusCode != 504 {
		t.Errorf("%d after %s: %s", a.StatusCode, took, a.body)
	}
}

func TestRedisStopsAndComesBack(t *testing.T) {
	h := newHouse(t)
	cookie := h.find(h.request("Kabul")).cookie()
	h.redis.Stop()
	a := h.find(h.request("Kabul"), "Cookie", "gms_id="+cookie)
	if a.Header.Get("X-Cache") != "MISS" || a.cookie() != cookie || len(a.list.Listings) != 3 {
		t.Errorf("without Redis: %s", a.body)
	}
	if fresh := h.find(h.request("Kabul")); fresh.cookie() == "" {
		t.Error("a first visit without Redis gets no cookie")
	}
	h.redis.Start()
	h.eventually("Redis is used again", func() bool {
		h.find(h.request("Kabul"), "Cookie", "gms_id="+cookie)
		return h.find(h.request("Kabul"), "Cookie", "gms_id="+cookie).Header.Get("X-Cache") == "HIT"
	})
}

func TestTheHintsOfAnUpstreamArePassedOn(t *testing.T) {
	h := newHouse(t)
	h.up.command(func(u *upstreams) {
		u.extra = `,"queryRewriteHint":{"did":"kabul"},"aiProvenance":{"model":"m-1"},"unknown":true`
	})
	body := string(h.find(h.request("Kabul")).body)
	if !strings.Contains(body, `"queryRewriteHint":{"did":"kabul"}`) || !strings.Contains(body, `"aiProvenance":{"model":"m-1"}`) || strings.Contains(body, "unknown") {
		t.Errorf("%s", body)
	}
}

func TestASuspendedTenantIsNotShown(t *testing.T) {
	h := newHouse(t)
	h.up.command(func(u *upstreams) { u.hits = 8 })
	h.find(h.request("Kabul"))
	h.suspend(tenantID(1))
	a := h.find(h.request("Kabul"))
	if a.Header.Get("X-Cache") != "HIT" || len(a.list.Listings) != 7 || a.list.ResultCount != 34 {
		t.Errorf("%s, %d cards of %d", a.Header.Get("X-Cache"), len(a.list.Listings), a.list.ResultCount)
	}
}

func TestCampaignModeKeepsListsLongAndRatesYoung(t *testing.T) {
	h := newHouse(t)
	h.setFlags(`{"campaignMode":true}`)
	h.up.command(func(u *upstreams) { u.captured = h.now })
	h.find(h.request("Kabul"))
	searches := h.up.searches.Load()
	marked := false
	for second := 10; second <= 260; second += 10 { // TTL 5 min, jitter −10 %
		h.advance(10 * time.Second)
		if second == 200 {
			h.up.command(func(u *upstreams) { u.failing["pricing"] = true })
		}
		a := h.find(h.request("Kabul"))
		if got := a.Header.Get("X-Cache"); got != "HIT" {
			t.Fatalf("after %d s: %s", second, got)
		}
		for _, card := range a.list.Listings {
			if card.RateSnapshot == nil {
				t.Fatalf("after %d s a rate is gone", second)
			}
			marked = marked || card.RateSnapshot.IsStale
			if age := h.now().Sub(card.RateSnapshot.CapturedAt); age > time.Minute && !card.RateSnapshot.IsStale {
				t.Fatalf("after %d s a rate of %s is shown as fresh", second, age)
			}
		}
	}
	if n := h.up.searches.Load() - searches; n != 0 {
		t.Errorf("search-aggregation was asked %d times again", n)
	}
	if n := h.up.quotes.Load(); n < 3 || n > 6 {
		t.Errorf("pricing was asked %d times before it failed", n)
	}
	if !marked {
		t.Error("no rate was marked stale while pricing failed")
	}
}

func TestWhilePricingFailsAHitIsStillAHit(t *testing.T) {
	h := newHouse(t)
	h.setFlags(`{"campaignMode":true,"sampling":{"search.executed":0}}`)
	h.up.command(func(u *upstreams) { u.captured = h.now })
	cookie := "gms_id=" + h.find(h.request("Kabul")).cookie()
	h.up.command(func(u *upstreams) { u.failing["pricing"] = true })
	h.advance(61 * time.Second)
	h.find(h.request("Kabul"), "Cookie", cookie) // the one that asks pricing
	for n := range 10 {
		h.trips.Take()
		a := h.find(h.request("Kabul"), "Cookie", cookie)
		if got := h.trips.Take(); got > 2 || a.Header.Get("X-Cache") != "HIT" || !a.list.Listings[0].RateSnapshot.IsStale {
			t.Errorf("hit %d: %s in %d round trips, %s", n, a.Header.Get("X-Cache"), got, a.body)
		}
	}
}

func TestAFirstVisitOfAWarmPageCostsTwoRoundTrips(t *testing.T) {
	h := newHouse(t)
	h.find(h.request("Kabul"))
	queries := h.parts.DB.Stat().AcquireCount()
	h.trips.Take()
	a := h.find(h.request("Kabul"), "DNT", "1") // no telemetry: nothing for Postgres
	if n := h.trips.Take(); n != 2 || a.Header.Get("X-Cache") != "HIT" || a.cookie() == "" {
		t.Errorf("%s in %d round trips", a.Header.Get("X-Cache"), n)
	}
	if n := h.parts.DB.Stat().AcquireCount() - queries; n != 0 {
		t.Errorf("%d uses of Postgres", n)
	}
}

func TestPostgresHangs(t *testing.T) {
	url, proxy := pgtest.Behind(t)
	h := newHouseOn(t, url)
	t.Cleanup(proxy.Heal)
	h.find(h.request("Kabul"))
	proxy.Hang()
	for n := range 8 {
		began := time.Now()
		h.find(h.request("Herat")) // a first visit each time: session.started is to be written
		if took := time.Since(began); took > time.Second || n > 5 && took > 150*time.Millisecond {
			t.Errorf("answer %d took %s", n, took)
		}
	}
	if n := h.parts.Redis.LLen(t.Context(), h.parts.Keys.Key("outbox", "spill")).Val(); n != 8 {
		t.Errorf("%d events wait in Redis", n)
	}
}

func TestPostgresIsGone(t *testing.T) {
	url, proxy := pgtest.Behind(t)
	h := newHouseOn(t, url)
	proxy.Break()
	if a := h.find(h.request("Kabul")); len(a.list.Listings) != 3 || len(a.list.Degraded) != 0 {
		t.Errorf("%s", a.body)
	}
}

func TestRedisHangs(t *testing.T) {
	h := newHouse(t)
	cookie := h.find(h.request("Kabul")).cookie()
	h.redis.Hang()
	for n := range 8 {
		began := time.Now()
		a := h.find(h.request("Kabul"), "Cookie", "gms_id="+cookie)
		if took := time.Since(began); took > 2500*time.Millisecond || a.cookie() != cookie {
			t.Errorf("answer %d took %s", n, took)
		}
	}
}

func TestBothStoresAreGone(t *testing.T) {
	url, proxy := pgtest.Behind(t)
	h := newHouseOn(t, url)
	proxy.Break()
	h.redis.Stop()
	if a := h.find(h.request("Kabul")); len(a.list.Listings) != 3 || a.cookie() == "" {
		t.Errorf("%s", a.body)
	}
	if !strings.Contains(h.log.String(), "telemetryLost") {
		t.Error("the log does not say that an event was lost")
	}
}

func TestScriptsForgottenInTheMiddle(t *testing.T) {
	h := newHouse(t)
	cookie := h.find(h.request("Kabul")).cookie()
	h.redisDo("SCRIPT", "FLUSH")
	h.advance(2 * time.Minute)
	if a := h.find(h.request("Herat"), "Cookie", "gms_id="+cookie); a.cookie() != cookie {
		t.Errorf("%s", a.body)
	}
	if n := h.parts.Redis.LLen(t.Context(), h.parts.Keys.SessionPart(cookie, "history")).Val(); n != 2 {
		t.Errorf("%d searches in the history", n)
	}
}

func TestABoxOverTheAntimeridian(t *testing.T) {
	h := newHouse(t)
	a := h.find(h.request("Kabul", `"mode":"city","city":"Kabul"`, `"mode":"bounding-box","boundingBox":{"swLat":-18,"swLng":178,"neLat":-16,"neLng":-179}`))
	if a.Header.Get("X-Cache") != "MISS" || len(a.list.Listings) != 3 {
		t.Errorf("%s", a.body)
	}
}

func TestTelemetryIsWrittenAndClean(t *testing.T) {
	h := newHouse(t)
	h.setFlags(loud)
	a := h.find(h.request("canary-place", `"occupancy"`, `"filters":{"amenities":["wifi","canary-amenity"],"neighbourhoods":["canary street"]},"occupancy"`),
		"X-Forwarded-For", "203.0.113.77", "User-Agent", "canary-agent/1.0", "X-Campaign-Source", "canary sentence", "X-Client-Timezone", "canary/zone")
	started, executed := h.rows("melmastoon.bff.consumer.session.started.v1"), h.rows("melmastoon.bff.consumer.search.executed.v1")
	if len(started) != 1 || len(executed) != 1 {
		t.Fatalf("%d started, %d executed", len(started), len(executed))
	}
	for _, message := range slices.Concat(started, executed) {
		var e event.Event
		if err := e.UnmarshalJSON(message); err != nil {
			t.Fatal(err)
		}
		if err := event.Validate(e); err != nil {
			t.Errorf("%v in %s", err, message)
		}
		for _, canary := range []string{"canary", "203.0.113", "192.0.2.1"} {
			if strings.Contains(string(message), canary) {
				t.Errorf("%q in %s", canary, message)
			}
		}
	}
	if s := string(executed[0]); !strings.Contains(s, a.list.SearchSessionID) || !strings.Contains(s, `"Kabul"`) {
		t.Errorf("%s", s)
	}
	for _, canary := range []string{"canary", "203.0.113", a.cookie()} {
		if strings.Contains(h.log.String(), canary) {
			t.Errorf("%q in the log", canary)
		}
	}
}

func TestWithoutConsentNothingIsWritten(t *testing.T) {
	h := newHouse(t)
	h.setFlags(loud)
	cookie := h.find(h.request("Kabul"), "DNT", "1").cookie()
	h.find(h.request("Kabul"), "Cookie", "gms_id="+cookie)
	var n int
	if err := h.parts.DB.QueryRow(t.Context(), `SELECT count(*) FROM bff_consumer.outbox`).Scan(&n); err != nil || n != 0 {
		t.Errorf("%d rows, %v", n, err)
	}
}

func TestTheRatedCardsAreTheFirstTwenty(t *testing.T) {
	h := newHouse(t)
	h.up.command(func(u *upstreams) { u.hits = 30 })
	a := h.find(h.request("Kabul", `"occupancy"`, `"page":{"limit":50},"occupancy"`))
	rated := 0
	for _, card := range a.list.Listings {
		if card.RateSnapshot != nil {
			rated++
		}
	}
	if rated != 20 || h.up.quotes.Load() != 1 {
		t.Errorf("%d cards rated in %d batches", rated, h.up.quotes.Load())
	}
}

func TestEachLimitAndOneBeyond(t *testing.T) {
	h := newHouse(t)
	point := func(radius string) string {
		return h.request("Kabul", `"mode":"city","city":"Kabul"`, `"mode":"point","point":{"lat":34.5,"lng":69.2,"radiusKm":`+radius+`}`)
	}
	box := func(width string) string {
		return h.request("Kabul", `"mode":"city","city":"Kabul"`, `"mode":"bounding-box","boundingBox":{"swLat":30,"swLng":60,"neLat":35,"neLng":`+width+`}`)
	}
	dates := func(ahead, nights int) string {
		in := h.now().AddDate(0, 0, ahead)
		ten := h.now().AddDate(0, 0, 10)
		return h.request("Kabul", fmt.Sprintf(`"checkIn":%q,"checkOut":%q`, ten.Format(time.DateOnly), ten.AddDate(0, 0, 3).Format(time.DateOnly)),
			fmt.Sprintf(`"checkIn":%q,"checkOut":%q`, in.Format(time.DateOnly), in.AddDate(0, 0, nights).Format(time.DateOnly)))
	}
	page := func(p string) string { return h.request("Kabul", `"occupancy"`, `"page":`+p+`,"occupancy"`) }
	for name, c := range map[string]struct {
		body string
		want int
	}{
		"radius 199":         {point("199"), 200},
		"radius 200":         {point("200"), 200},
		"radius 201":         {point("201"), 422},
		"radius 0":           {point("0"), 422},
		"box 24":             {box("64.8"), 200},
		"box 25":             {box("65"), 200},
		"box 26":             {box("65.2"), 422},
		"today":              {dates(0, 1), 200},
		"yesterday":          {dates(-1, 2), 422},
		"499 days ahead":     {dates(499, 1), 200},
		"500 days ahead":     {dates(500, 1), 200},
		"501 days ahead":     {dates(501, 1), 422},
		"29 nights":          {dates(5, 29), 200},
		"30 nights":          {dates(5, 30), 200},
		"31 nights":          {dates(5, 31), 422},
		"no night":           {dates(5, 0), 422},
		"limit 1":            {page(`{"limit":1}`), 200},
		"limit 50":           {page(`{"limit":50}`), 200},
		"limit 51":           {page(`{"limit":51}`), 422},
		"limit 0":            {page(`{"limit":0}`), 422},
		"offset 1000":        {page(`{"offset":1000}`), 200},
		"offset 1001":        {page(`{"offset":1001}`), 422},
		"offset -1":          {page(`{"offset":-1}`), 422},
		"a name of 80":       {h.request(strings.Repeat("ک", 80)), 200},
		"a name of 81":       {h.request(strings.Repeat("ک", 81)), 422},
		"price as string":    {h.request("Kabul", `"occupancy"`, `"filters":{"priceRange":{"min":"100","max":"200","currency":"AFN"}},"occupancy"`), 200},
		"price as number":    {h.request("Kabul", `"occupancy"`, `"filters":{"priceRange":{"min":100,"currency":"AFN"}},"occupancy"`), 200},
		"price reversed":     {h.request("Kabul", `"occupancy"`, `"filters":{"priceRange":{"min":"300","max":"200","currency":"AFN"}},"occupancy"`), 422},
		"price with decimal": {h.request("Kabul", `"occupancy"`, `"filters":{"priceRange":{"min":1.5,"currency":"AFN"}},"occupancy"`), 422},
	} {
		if a := h.do("POST", "/search", c.body); a.StatusCode != c.want {
			t.Errorf("%s: %d, want %d: %s", name, a.StatusCode, c.want, a.body)
		}
	}
}

func TestRatesThatArriveOldDoNotMakeEveryHitAsk(t *testing.T) {
	h := newHouse(t)
	h.up.command(func(u *upstreams) { u.captured = func() time.Time { return h.now().Add(-2 * time.Minute) } })
	for range 20 {
		if a := h.find(h.request("Kabul")); !a.list.Listings[0].RateSnapshot.IsStale {
			t.Fatal("a rate of two minutes is shown as fresh")
		}
	}
	if n := h.up.quotes.Load(); n != 1 {
		t.Errorf("pricing was asked %d times", n)
	}
}

func TestATinyBoxIsSearched(t *testing.T) {
	h := newHouse(t)
	h.find(h.request("Kabul", `"mode":"city","city":"Kabul"`, `"mode":"bounding-box","boundingBox":{"swLat":34.5,"swLng":69,"neLat":34.5000000000001,"neLng":69.0000000000001}`))
	box := h.up.last["geo"].(map[string]any)["boundingBox"].(map[string]any)
	if box["swLat"].(float64) >= box["neLat"].(float64) || box["swLng"].(float64) >= box["neLng"].(float64) {
		t.Errorf("asked for %v", box)
	}
}
