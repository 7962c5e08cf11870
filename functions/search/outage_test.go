package search

import (
	"strings"
	"testing"
	"time"

	"melmastoon.ghasi.io/bff-consumer/shared/testkit/functest"
	"melmastoon.ghasi.io/bff-consumer/shared/web"
)

func TestSearchList_PricingTimeoutDegradesRates(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.upstreams.Hang("pricing")
	began := time.Now()
	a := h.mustSearch(h.requestBody("Kabul"))
	if took := time.Since(began); took > web.Budget+functest.SlackTime {
		t.Errorf("got an answer after %s; want at most %s", took, web.Budget+functest.SlackTime)
	}
	if len(a.body.Degraded) != 1 || a.body.Degraded[0].Part != "pricing" || a.body.Listings[0].RateSnapshot != nil {
		t.Errorf(`got %s; want len(Degraded) = 1, Degraded[0].Part = "pricing", Listings[0].RateSnapshot = nil`, a.Text)
	}
	h.upstreams.Recover("pricing")
	h.Advance(3 * time.Second)
	if a = h.mustSearch(h.requestBody("Kabul")); len(a.body.Degraded) != 0 || a.body.Listings[0].RateSnapshot == nil {
		t.Errorf("after pricing recovered: got %s; want rates", a.Text)
	}
}

func TestSearchList_ThemeFailureShowsNeutralBrands(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.upstreams.Fail("theme")
	a := h.mustSearch(h.requestBody("Kabul"))
	if len(a.body.Degraded) != 1 || a.body.Degraded[0].Part != "theme" || !a.body.Listings[0].BrandPeek.Neutral || a.body.Listings[0].RateSnapshot == nil {
		t.Errorf(`got %s; want len(Degraded) = 1, Degraded[0].Part = "theme", Listings[0].BrandPeek.Neutral, Listings[0].RateSnapshot set`, a.Text)
	}
}

func TestSearchList_UpstreamFailureServesStaleThen503(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.mustSearch(h.requestBody("Kabul"))
	h.upstreams.Fail("search")
	h.Advance(2 * time.Minute)
	a := h.mustSearch(h.requestBody("Kabul"))
	if a.Header.Get("X-Cache") != "STALE" || !a.body.Listings[0].RateSnapshot.IsStale {
		t.Errorf("with a stored page: got %s %s; want STALE with stale rates", a.Header.Get("X-Cache"), a.Text)
	}
	h.Advance(10 * time.Minute)
	if a := h.do("POST", "/search", h.requestBody("Kabul")); a.StatusCode != 503 || a.Code != "MELMASTOON.BFF.CONSUMER.UPSTREAM_UNAVAILABLE" || a.Header.Get("Retry-After") == "" {
		t.Errorf("after the page expired: got %d %s; want 503 with Retry-After", a.StatusCode, a.Text)
	}
	if a := h.do("POST", "/search", h.requestBody("Herat")); a.StatusCode != 503 || a.SessionCookie() != "" {
		t.Errorf("without a stored page: got %d %s; want 503 without a cookie", a.StatusCode, a.Text)
	}
}

func TestSearchList_UpstreamTimeoutAnswers504(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.upstreams.Hang("search")
	began := time.Now()
	a := h.do("POST", "/search", h.requestBody("Kabul"))
	if took := time.Since(began); took > web.Budget+functest.SlackTime || a.StatusCode != 504 {
		t.Errorf("got %d after %s: %s; want 504 after at most %s", a.StatusCode, took, a.Text, web.Budget+functest.SlackTime)
	}
}

func TestSearchList_SurvivesRedisOutage(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	cookie := h.mustSearch(h.requestBody("Kabul")).SessionCookie()
	h.Redis.Stop()
	a := h.mustSearch(h.requestBody("Kabul"), "Cookie", "gms_id="+cookie)
	if a.Header.Get("X-Cache") != "MISS" || a.SessionCookie() != cookie || len(a.body.Listings) != 3 {
		t.Errorf("without Redis: got %s; want MISS, the same cookie and 3 cards", a.Text)
	}
	if fresh := h.mustSearch(h.requestBody("Kabul")); fresh.SessionCookie() == "" {
		t.Error("first request without Redis: got no cookie")
	}
	h.Redis.Start()
	h.Eventually("a hit after Redis is back", func() bool {
		h.mustSearch(h.requestBody("Kabul"), "Cookie", "gms_id="+cookie)
		return h.mustSearch(h.requestBody("Kabul"), "Cookie", "gms_id="+cookie).Header.Get("X-Cache") == "HIT"
	})
}

func TestSearchList_CampaignModeExtendsTTLAndRefreshesRates(t *testing.T) {
	t.Parallel()
	h := newHarnessWithFlags(t, `{"campaignMode":true}`)
	h.upstreams.Update(func() { h.upstreams.capturedAt = h.Now })
	h.mustSearch(h.requestBody("Kabul"))
	searches := h.upstreams.Calls("queries")
	marked := false
	for second := 10; second <= 260; second += 10 { // TTL 5 min, jitter −10 %
		h.Advance(10 * time.Second)
		if second == 200 {
			h.upstreams.Fail("pricing")
		}
		a := h.mustSearch(h.requestBody("Kabul"))
		if got := a.Header.Get("X-Cache"); got != "HIT" {
			t.Fatalf("after %d s: got %s; want HIT", second, got)
		}
		for _, card := range a.body.Listings {
			if card.RateSnapshot == nil {
				t.Fatalf("after %d s: got a card without a rate", second)
			}
			marked = marked || card.RateSnapshot.IsStale
			if age := h.Now().Sub(card.RateSnapshot.CapturedAt); age > time.Minute && !card.RateSnapshot.IsStale {
				t.Fatalf("after %d s: got a rate of age %s without isStale", second, age)
			}
		}
	}
	if n := h.upstreams.Calls("queries") - searches; n != 0 {
		t.Errorf("got %d further calls of search-aggregation; want 0", n)
	}
	if n := h.upstreams.Calls("pricing"); n < 3 || n > 6 {
		t.Errorf("got %d answered calls of pricing; want 3 to 6", n)
	}
	if !marked {
		t.Error("got no rate with isStale while pricing failed")
	}
}

func TestSearchList_PricingFailureKeepsCacheHits(t *testing.T) {
	t.Parallel()
	h := newHarnessWithFlags(t, `{"campaignMode":true,"sampling":{"search.executed":0}}`)
	h.upstreams.Update(func() { h.upstreams.capturedAt = h.Now })
	cookie := "gms_id=" + h.mustSearch(h.requestBody("Kabul")).SessionCookie()
	h.upstreams.Fail("pricing")
	h.Advance(61 * time.Second)
	h.mustSearch(h.requestBody("Kabul"), "Cookie", cookie) // calls pricing, which fails
	for n := range 10 {
		h.RoundTrips.TakeCount()
		a := h.mustSearch(h.requestBody("Kabul"), "Cookie", cookie)
		if got := h.RoundTrips.TakeCount(); got > 2 || a.Header.Get("X-Cache") != "HIT" || !a.body.Listings[0].RateSnapshot.IsStale {
			t.Errorf("hit %d: got %s in %d round trips, %s; want HIT in at most 2 with stale rates", n, a.Header.Get("X-Cache"), got, a.Text)
		}
	}
}

func TestSearchList_PostgresTimeoutBuffersEventsInRedis(t *testing.T) {
	t.Parallel()
	h := newHarnessWith(functest.NewWithProxy(t), samplingOff) // a sampled guest would have a second event
	h.mustSearch(h.requestBody("Kabul"))
	buffered := func() int64 { return h.RDB.LLen(t.Context(), h.Deps.Keys.Key("outbox", "spill")).Val() }
	before := buffered() // under load the first event may have missed Postgres's 300 ms
	h.PostgresProxy.Hang()
	for n := range 8 {
		began := time.Now()
		h.mustSearch(h.requestBody("Herat")) // a new session each time, with the event session.started
		if took := time.Since(began); took > web.Budget+functest.SlackTime {
			t.Errorf("answer %d: got it after %s; want at most %s", n, took, web.Budget+functest.SlackTime)
		}
	}
	if n := buffered() - before; n != 8 {
		t.Errorf("got %d events in Redis; want 8", n)
	}
}

func TestSearchList_AnswersWithoutPostgres(t *testing.T) {
	t.Parallel()
	h := newHarnessWith(functest.NewWithProxy(t), `{}`)
	h.PostgresProxy.Break()
	if a := h.mustSearch(h.requestBody("Kabul")); len(a.body.Listings) != 3 || len(a.body.Degraded) != 0 {
		t.Errorf("got %s; want len(Listings) = 3, len(Degraded) = 0", a.Text)
	}
}

func TestSearchList_RedisTimeoutStaysWithinBudget(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	cookie := h.mustSearch(h.requestBody("Kabul")).SessionCookie()
	h.Redis.Hang()
	for n := range 8 {
		began := time.Now()
		a := h.mustSearch(h.requestBody("Kabul"), "Cookie", "gms_id="+cookie)
		if took := time.Since(began); took > web.Budget+functest.SlackTime || a.SessionCookie() != cookie {
			t.Errorf("answer %d: got it after %s; want at most %s", n, took, web.Budget+functest.SlackTime)
		}
	}
}

func TestSearchList_AnswersWithoutStoresAndLogsLostEvents(t *testing.T) {
	t.Parallel()
	h := newHarnessWith(functest.NewWithProxy(t), `{}`)
	h.PostgresProxy.Break()
	h.Redis.Stop()
	if a := h.mustSearch(h.requestBody("Kabul")); len(a.body.Listings) != 3 || a.SessionCookie() == "" {
		t.Errorf("got %s; want len(Listings) = 3, non-empty cookie", a.Text)
	}
	if !strings.Contains(h.Log.String(), "telemetryLost") {
		t.Error("got no log field telemetryLost")
	}
}

func TestSearchList_SurvivesScriptFlush(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	cookie := h.mustSearch(h.requestBody("Kabul")).SessionCookie()
	if err := h.RDB.ScriptFlush(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	h.Advance(2 * time.Minute)
	if a := h.mustSearch(h.requestBody("Herat"), "Cookie", "gms_id="+cookie); a.SessionCookie() != cookie {
		t.Errorf("got %s; want cookie = %v", a.Text, cookie)
	}
	if n := h.RDB.LLen(t.Context(), h.Deps.Keys.SessionPart(cookie, "history")).Val(); n != 2 {
		t.Errorf("got %d searches in the history; want 2", n)
	}
}

func TestSearchList_RatesStaleOnArrivalAreNotRefetchedPerHit(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.upstreams.Update(func() { h.upstreams.capturedAt = func() time.Time { return h.Now().Add(-2 * time.Minute) } })
	for range 20 {
		if a := h.mustSearch(h.requestBody("Kabul")); !a.body.Listings[0].RateSnapshot.IsStale {
			t.Fatal("got a rate of age 2 min without isStale")
		}
	}
	if n := h.upstreams.Calls("pricing"); n != 1 {
		t.Errorf("got %d calls of pricing; want 1", n)
	}
}
