package search

import (
	"slices"
	"strings"
	"testing"

	"melmastoon.ghasi.io/bff-consumer/shared/event"
	"melmastoon.ghasi.io/bff-consumer/shared/event/strict"
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
		t.Errorf("%s", first.Text)
	}
	card := first.list.Listings[0]
	if card.RateSnapshot == nil || card.RateSnapshot.CheapestNightlyMinor != "450000" || card.RateSnapshot.IsStale || card.BrandPeek.Neutral {
		t.Errorf("%+v", card)
	}
	if !slices.Equal(card.Badges, []string{"crossRegionDelivery", "shariaCompliant"}) {
		t.Errorf("badges %v", card.Badges)
	}
	calls := h.up.Calls()
	second := h.find(h.request("Kabul"), "Accept-Language", "ps-AF", "X-Currency", "AFN", "Cookie", "gms_id="+first.Cookie())
	if got := second.Header.Get("X-Cache"); got != "HIT" || h.up.Calls() != calls {
		t.Errorf("the second answer is %s after %d further calls", got, h.up.Calls()-calls)
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
	cookie := "gms_id=" + h.find(h.request("Kabul")).Cookie()
	h.find(h.request("Kabul"), "Cookie", cookie)
	queries := h.Parts.DB.Stat().AcquireCount()
	calls := h.up.Calls()
	h.Trips.Take()
	if got := h.find(h.request("Kabul"), "Cookie", cookie).Header.Get("X-Cache"); got != "HIT" {
		t.Fatalf("not warm: %s", got)
	}
	if n := h.Trips.Take(); n > 2 {
		t.Errorf("%d Redis round trips", n)
	}
	if n := h.Parts.DB.Stat().AcquireCount() - queries; n != 0 {
		t.Errorf("%d uses of Postgres", n)
	}
	if n := h.up.Calls() - calls; n != 0 {
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
	id := h.find(h.request("Kabul")).Cookie()
	if err := h.RDB.HSet(t.Context(), h.Parts.Keys.Session(id), "localePreference", "ar", "localeSource", "user-explicit").Err(); err != nil {
		t.Fatal(err)
	}
	h.find(h.request("Kabul"), "Cookie", "gms_id="+id)
	h.Trips.Take()
	a := h.find(h.request("Kabul"), "Cookie", "gms_id="+id)
	if n := h.Trips.Take(); n > 2 || a.list.Locale != "ar" || a.Header.Get("X-Cache") != "HIT" {
		t.Errorf("%d round trips for %s in %s", n, a.Header.Get("X-Cache"), a.list.Locale)
	}
}

func TestTheHintsOfAnUpstreamArePassedOn(t *testing.T) {
	h := newHouse(t)
	h.up.Change(func() {
		h.up.extra = `,"queryRewriteHint":{"did":"kabul"},"aiProvenance":{"model":"m-1"},"unknown":true`
	})
	body := h.find(h.request("Kabul")).Text
	if !strings.Contains(body, `"queryRewriteHint":{"did":"kabul"}`) || !strings.Contains(body, `"aiProvenance":{"model":"m-1"}`) || strings.Contains(body, "unknown") {
		t.Errorf("%s", body)
	}
}

func TestASuspendedTenantIsNotShown(t *testing.T) {
	h := newHouse(t)
	h.up.Change(func() { h.up.hits = 8 })
	h.find(h.request("Kabul"))
	h.Suspend(tenantID(1))
	a := h.find(h.request("Kabul"))
	if a.Header.Get("X-Cache") != "HIT" || len(a.list.Listings) != 7 || a.list.ResultCount != 34 {
		t.Errorf("%s, %d cards of %d", a.Header.Get("X-Cache"), len(a.list.Listings), a.list.ResultCount)
	}
}

func TestAFirstVisitOfAWarmPageCostsTwoRoundTrips(t *testing.T) {
	h := newHouse(t)
	h.find(h.request("Kabul"))
	queries := h.Parts.DB.Stat().AcquireCount()
	h.Trips.Take()
	a := h.find(h.request("Kabul"), "DNT", "1") // no telemetry: nothing for Postgres
	if n := h.Trips.Take(); n != 2 || a.Header.Get("X-Cache") != "HIT" || a.Cookie() == "" {
		t.Errorf("%s in %d round trips", a.Header.Get("X-Cache"), n)
	}
	if n := h.Parts.DB.Stat().AcquireCount() - queries; n != 0 {
		t.Errorf("%d uses of Postgres", n)
	}
}

func TestTelemetryIsWrittenAndClean(t *testing.T) {
	h := newHouse(t)
	h.setFlags(loud)
	a := h.find(h.request("canary-place", `"occupancy"`, `"filters":{"amenities":["wifi","canary-amenity"],"neighbourhoods":["canary street"]},"occupancy"`),
		"X-Forwarded-For", "203.0.113.77", "User-Agent", "canary-agent/1.0", "X-Campaign-Source", "canary sentence", "X-Client-Timezone", "canary/zone")
	started, executed := h.Messages("session.started"), h.Messages("search.executed")
	if len(started) != 1 || len(executed) != 1 {
		t.Fatalf("%d started, %d executed", len(started), len(executed))
	}
	for _, message := range slices.Concat(started, executed) {
		var e event.Event
		if err := e.UnmarshalJSON(message); err != nil {
			t.Fatal(err)
		}
		if err := strict.Validate(e); err != nil {
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
	for _, canary := range []string{"canary", "203.0.113", a.Cookie()} {
		if strings.Contains(h.Log.String(), canary) {
			t.Errorf("%q in the log", canary)
		}
	}
}

func TestWithoutConsentNothingIsWritten(t *testing.T) {
	h := newHouse(t)
	h.setFlags(loud)
	cookie := h.find(h.request("Kabul"), "DNT", "1").Cookie()
	h.find(h.request("Kabul"), "Cookie", "gms_id="+cookie)
	var n int
	if err := h.DB.QueryRow(t.Context(), `SELECT count(*) FROM bff_consumer.outbox`).Scan(&n); err != nil || n != 0 {
		t.Errorf("%d rows, %v", n, err)
	}
}

func TestTheRatedCardsAreTheFirstTwenty(t *testing.T) {
	h := newHouse(t)
	h.up.Change(func() { h.up.hits = 30 })
	a := h.find(h.request("Kabul", `"occupancy"`, `"page":{"limit":50},"occupancy"`))
	rated := 0
	for _, card := range a.list.Listings {
		if card.RateSnapshot != nil {
			rated++
		}
	}
	if rated != 20 || h.up.Calls("pricing") != 1 {
		t.Errorf("%d cards rated in %d batches", rated, h.up.Calls("pricing"))
	}
}
