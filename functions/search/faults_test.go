package search

import (
	"strings"
	"testing"
	"time"

	"melmastoon.ghasi.io/bff-consumer/shared/functest"
	"melmastoon.ghasi.io/bff-consumer/shared/web"
)

func TestPricingHangs(t *testing.T) {
	h := newHouse(t)
	h.up.Hang("pricing")
	began := time.Now()
	a := h.find(h.request("Kabul"))
	if took := time.Since(began); took > web.Budget+functest.Late {
		t.Errorf("answered after %s", took)
	}
	if len(a.list.Degraded) != 1 || a.list.Degraded[0].Part != "pricing" || a.list.Listings[0].RateSnapshot != nil {
		t.Errorf("%s", a.Text)
	}
	h.up.Recover("pricing")
	h.Advance(3 * time.Second)
	if a = h.find(h.request("Kabul")); len(a.list.Degraded) != 0 || a.list.Listings[0].RateSnapshot == nil {
		t.Errorf("not mended: %s", a.Text)
	}
}

func TestThemeFails(t *testing.T) {
	h := newHouse(t)
	h.up.Fail("theme")
	a := h.find(h.request("Kabul"))
	if len(a.list.Degraded) != 1 || a.list.Degraded[0].Part != "theme" || !a.list.Listings[0].BrandPeek.Neutral || a.list.Listings[0].RateSnapshot == nil {
		t.Errorf("%s", a.Text)
	}
}

func TestSearchAggregationFails(t *testing.T) {
	h := newHouse(t)
	h.find(h.request("Kabul"))
	h.up.Fail("search")
	h.Advance(2 * time.Minute)
	a := h.find(h.request("Kabul"))
	if a.Header.Get("X-Cache") != "STALE" || !a.list.Listings[0].RateSnapshot.IsStale {
		t.Errorf("after a good answer: %s %s", a.Header.Get("X-Cache"), a.Text)
	}
	h.Advance(10 * time.Minute)
	if a := h.do("POST", "/search", h.request("Kabul")); a.StatusCode != 503 || a.Code != "MELMASTOON.BFF.CONSUMER.UPSTREAM_UNAVAILABLE" || a.Header.Get("Retry-After") == "" {
		t.Errorf("when nothing is kept: %d %s", a.StatusCode, a.Text)
	}
	if a := h.do("POST", "/search", h.request("Herat")); a.StatusCode != 503 || a.Cookie() != "" {
		t.Errorf("when there never was: %d %s", a.StatusCode, a.Text)
	}
}

func TestSearchAggregationHangs(t *testing.T) {
	h := newHouse(t)
	h.up.Hang("search")
	began := time.Now()
	a := h.do("POST", "/search", h.request("Kabul"))
	if took := time.Since(began); took > web.Budget+functest.Late || a.StatusCode != 504 {
		t.Errorf("%d after %s: %s", a.StatusCode, took, a.Text)
	}
}

func TestRedisStopsAndComesBack(t *testing.T) {
	h := newHouse(t)
	cookie := h.find(h.request("Kabul")).Cookie()
	h.Redis.Stop()
	a := h.find(h.request("Kabul"), "Cookie", "gms_id="+cookie)
	if a.Header.Get("X-Cache") != "MISS" || a.Cookie() != cookie || len(a.list.Listings) != 3 {
		t.Errorf("without Redis: %s", a.Text)
	}
	if fresh := h.find(h.request("Kabul")); fresh.Cookie() == "" {
		t.Error("a first visit without Redis gets no cookie")
	}
	h.Redis.Start()
	h.Eventually("Redis is used again", func() bool {
		h.find(h.request("Kabul"), "Cookie", "gms_id="+cookie)
		return h.find(h.request("Kabul"), "Cookie", "gms_id="+cookie).Header.Get("X-Cache") == "HIT"
	})
}

func TestCampaignModeKeepsListsLongAndRatesYoung(t *testing.T) {
	h := newHouse(t)
	h.setFlags(`{"campaignMode":true}`)
	h.up.Change(func() { h.up.captured = h.Now })
	h.find(h.request("Kabul"))
	searches := h.up.Calls("queries")
	marked := false
	for second := 10; second <= 260; second += 10 { // TTL 5 min, jitter −10 %
		h.Advance(10 * time.Second)
		if second == 200 {
			h.up.Fail("pricing")
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
			if age := h.Now().Sub(card.RateSnapshot.CapturedAt); age > time.Minute && !card.RateSnapshot.IsStale {
				t.Fatalf("after %d s a rate of %s is shown as fresh", second, age)
			}
		}
	}
	if n := h.up.Calls("queries") - searches; n != 0 {
		t.Errorf("search-aggregation was asked %d times again", n)
	}
	if n := h.up.Calls("pricing"); n < 3 || n > 6 {
		t.Errorf("pricing was asked %d times before it failed", n)
	}
	if !marked {
		t.Error("no rate was marked stale while pricing failed")
	}
}

func TestWhilePricingFailsAHitIsStillAHit(t *testing.T) {
	h := newHouse(t)
	h.setFlags(`{"campaignMode":true,"sampling":{"search.executed":0}}`)
	h.up.Change(func() { h.up.captured = h.Now })
	cookie := "gms_id=" + h.find(h.request("Kabul")).Cookie()
	h.up.Fail("pricing")
	h.Advance(61 * time.Second)
	h.find(h.request("Kabul"), "Cookie", cookie) // the one that asks pricing
	for n := range 10 {
		h.Trips.Take()
		a := h.find(h.request("Kabul"), "Cookie", cookie)
		if got := h.Trips.Take(); got > 2 || a.Header.Get("X-Cache") != "HIT" || !a.list.Listings[0].RateSnapshot.IsStale {
			t.Errorf("hit %d: %s in %d round trips, %s", n, a.Header.Get("X-Cache"), got, a.Text)
		}
	}
}

func TestPostgresHangs(t *testing.T) {
	h := houseIn(functest.Behind(t))
	h.setFlags(quiet) // or a sampled guest would have a second event
	h.find(h.request("Kabul"))
	waiting := func() int64 { return h.RDB.LLen(t.Context(), h.Parts.Keys.Key("outbox", "spill")).Val() }
	before := waiting() // a busy machine may have been too slow for Postgres already
	h.PG.Hang()
	for n := range 8 {
		began := time.Now()
		h.find(h.request("Herat")) // a first visit each time: session.started is to be written
		if took := time.Since(began); took > web.Budget+functest.Late {
			t.Errorf("answer %d took %s", n, took)
		}
	}
	if n := waiting() - before; n != 8 {
		t.Errorf("%d events wait in Redis", n)
	}
}

func TestPostgresIsGone(t *testing.T) {
	h := houseIn(functest.Behind(t))
	h.PG.Break()
	if a := h.find(h.request("Kabul")); len(a.list.Listings) != 3 || len(a.list.Degraded) != 0 {
		t.Errorf("%s", a.Text)
	}
}

func TestRedisHangs(t *testing.T) {
	h := newHouse(t)
	cookie := h.find(h.request("Kabul")).Cookie()
	h.Redis.Hang()
	for n := range 8 {
		began := time.Now()
		a := h.find(h.request("Kabul"), "Cookie", "gms_id="+cookie)
		if took := time.Since(began); took > web.Budget+functest.Late || a.Cookie() != cookie {
			t.Errorf("answer %d took %s", n, took)
		}
	}
}

func TestBothStoresAreGone(t *testing.T) {
	h := houseIn(functest.Behind(t))
	h.PG.Break()
	h.Redis.Stop()
	if a := h.find(h.request("Kabul")); len(a.list.Listings) != 3 || a.Cookie() == "" {
		t.Errorf("%s", a.Text)
	}
	if !strings.Contains(h.Log.String(), "telemetryLost") {
		t.Error("the log does not say that an event was lost")
	}
}

func TestScriptsForgottenInTheMiddle(t *testing.T) {
	h := newHouse(t)
	cookie := h.find(h.request("Kabul")).Cookie()
	if err := h.RDB.ScriptFlush(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	h.Advance(2 * time.Minute)
	if a := h.find(h.request("Herat"), "Cookie", "gms_id="+cookie); a.Cookie() != cookie {
		t.Errorf("%s", a.Text)
	}
	if n := h.RDB.LLen(t.Context(), h.Parts.Keys.SessionPart(cookie, "history")).Val(); n != 2 {
		t.Errorf("%d searches in the history", n)
	}
}

func TestRatesThatArriveOldDoNotMakeEveryHitAsk(t *testing.T) {
	h := newHouse(t)
	h.up.Change(func() { h.up.captured = func() time.Time { return h.Now().Add(-2 * time.Minute) } })
	for range 20 {
		if a := h.find(h.request("Kabul")); !a.list.Listings[0].RateSnapshot.IsStale {
			t.Fatal("a rate of two minutes is shown as fresh")
		}
	}
	if n := h.up.Calls("pricing"); n != 1 {
		t.Errorf("pricing was asked %d times", n)
	}
}
