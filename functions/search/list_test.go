package search

import (
	"slices"
	"strings"
	"testing"

	"melmastoon.ghasi.io/bff-consumer/shared/event"
	"melmastoon.ghasi.io/bff-consumer/shared/event/strict"
)

// Flags documents: samplingOff samples no session, samplingOn every session.
const (
	samplingOff = `{"sampling":{"search.executed":0}}`
	samplingOn  = `{"sampling":{"search.executed":1}}`
)

func TestSearchList_ComposesThenServesFromCache(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	first := h.mustSearch(h.requestBody("Kabul"), "Accept-Language", "ps-AF", "X-Currency", "AFN")
	if got := first.Header.Get("X-Cache"); got != "MISS" {
		t.Errorf("first answer: got %s; want MISS", got)
	}
	if first.body.Locale != "ps-AF" || first.body.Currency != "AFN" || first.body.ResultCount != 30 || len(first.body.Listings) != 3 {
		t.Errorf(`got %s; want Locale = "ps-AF", Currency = "AFN", ResultCount = 30, len(Listings) = 3`, first.Text)
	}
	card := first.body.Listings[0]
	if card.RateSnapshot == nil || card.RateSnapshot.CheapestNightlyMinor != "450000" || card.RateSnapshot.IsStale || card.BrandPeek.Neutral {
		t.Errorf(`got %+v; want a fresh rate of 450000 and a brand`, card)
	}
	if !slices.Equal(card.Badges, []string{"crossRegionDelivery", "shariaCompliant"}) {
		t.Errorf("got badges %v; want crossRegionDelivery, shariaCompliant", card.Badges)
	}
	calls := h.upstreams.Calls()
	second := h.mustSearch(h.requestBody("Kabul"), "Accept-Language", "ps-AF", "X-Currency", "AFN", "Cookie", "gms_id="+first.SessionCookie())
	if got := second.Header.Get("X-Cache"); got != "HIT" || h.upstreams.Calls() != calls {
		t.Errorf("second answer: got %s after %d upstream calls; want HIT after 0", got, h.upstreams.Calls()-calls)
	}
	if second.body.SearchSessionID != first.body.SearchSessionID {
		t.Errorf("search session: got %s; want %s", second.body.SearchSessionID, first.body.SearchSessionID)
	}
	if got := second.Header.Get("Cache-Control"); got != "private, no-store" {
		t.Errorf("Cache-Control: got %q; want private, no-store", got)
	}
}

func TestSearchList_WarmHitUsesTwoRedisRoundTrips(t *testing.T) {
	t.Parallel()
	h := newHarnessWithFlags(t, samplingOff)
	cookie := "gms_id=" + h.mustSearch(h.requestBody("Kabul")).SessionCookie()
	h.mustSearch(h.requestBody("Kabul"), "Cookie", cookie)
	queries := h.Deps.DB.Stat().AcquireCount()
	calls := h.upstreams.Calls()
	h.RoundTrips.TakeCount()
	if got := h.mustSearch(h.requestBody("Kabul"), "Cookie", cookie).Header.Get("X-Cache"); got != "HIT" {
		t.Fatalf("not warm: %s", got)
	}
	if n := h.RoundTrips.TakeCount(); n > 2 {
		t.Errorf("got %d Redis round trips; want at most 2", n)
	}
	if n := h.Deps.DB.Stat().AcquireCount() - queries; n != 0 {
		t.Errorf("got %d uses of Postgres; want 0", n)
	}
	if n := h.upstreams.Calls() - calls; n != 0 {
		t.Errorf("got %d upstream calls; want 0", n)
	}
}

func TestSearchList_EquivalentQueriesShareCacheEntry(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	a := h.mustSearch(h.requestBody("Kabul", `"occupancy"`, `"filters":{"amenities":["wifi","parking","wifi"],"starRating":[5,3],"cancellationFlexibility":"any"},"sortKey":"recommended","page":{"limit":20,"offset":0},"occupancy"`))
	b := h.mustSearch(h.requestBody("  KABUL", `"occupancy"`, `"filters":{"starRating":[3,5],"amenities":["parking","wifi"]},"occupancy"`))
	if a.body.QueryHash != b.body.QueryHash || b.Header.Get("X-Cache") != "HIT" {
		t.Errorf("got hashes %s and %s, X-Cache %s; want one hash and HIT", a.body.QueryHash, b.body.QueryHash, b.Header.Get("X-Cache"))
	}
}

func TestSearchList_DifferentQueriesHaveSeparateEntries(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	base := h.mustSearch(h.requestBody("Kabul"))
	for name, a := range map[string]*response{
		"locale":    h.mustSearch(h.requestBody("Kabul"), "Accept-Language", "fr"),
		"currency":  h.mustSearch(h.requestBody("Kabul"), "X-Currency", "EUR"),
		"city":      h.mustSearch(h.requestBody("Herat")),
		"sort":      h.mustSearch(h.requestBody("Kabul", `"occupancy"`, `"sortKey":"price-asc","occupancy"`)),
		"occupancy": h.mustSearch(h.requestBody("Kabul", `"adults":2`, `"adults":3`)),
		"filters":   h.mustSearch(h.requestBody("Kabul", `"occupancy"`, `"filters":{"starRating":[5]},"occupancy"`)),
	} {
		if a.body.QueryHash == base.body.QueryHash || a.Header.Get("X-Cache") != "MISS" {
			t.Errorf("another %s: got %s; want MISS with another hash", name, a.Header.Get("X-Cache"))
		}
	}
	if page := h.mustSearch(h.requestBody("Kabul", `"occupancy"`, `"page":{"offset":20},"occupancy"`)); page.Header.Get("X-Cache") != "MISS" || page.body.QueryHash != base.body.QueryHash {
		t.Errorf("another page: got %s; want MISS with the same hash", page.Header.Get("X-Cache"))
	}
}

func TestSearchList_ExplicitLocaleCostsExtraRoundTripOnlyOnce(t *testing.T) {
	t.Parallel()
	h := newHarnessWithFlags(t, samplingOff)
	id := h.mustSearch(h.requestBody("Kabul")).SessionCookie()
	if err := h.RDB.HSet(t.Context(), h.Deps.Keys.Session(id), "localePreference", "ar", "localeSource", "user-explicit").Err(); err != nil {
		t.Fatal(err)
	}
	h.mustSearch(h.requestBody("Kabul"), "Cookie", "gms_id="+id)
	h.RoundTrips.TakeCount()
	a := h.mustSearch(h.requestBody("Kabul"), "Cookie", "gms_id="+id)
	if n := h.RoundTrips.TakeCount(); n > 2 || a.body.Locale != "ar" || a.Header.Get("X-Cache") != "HIT" {
		t.Errorf("got %d round trips for %s in %s; want at most 2 for HIT in ar", n, a.Header.Get("X-Cache"), a.body.Locale)
	}
}

func TestSearchList_PassesUpstreamHintsThrough(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.upstreams.Update(func() {
		h.upstreams.extraMembers = `,"queryRewriteHint":{"did":"kabul"},"aiProvenance":{"model":"m-1"},"unknown":true`
	})
	body := h.mustSearch(h.requestBody("Kabul")).Text
	if !strings.Contains(body, `"queryRewriteHint":{"did":"kabul"}`) || !strings.Contains(body, `"aiProvenance":{"model":"m-1"}`) || strings.Contains(body, "unknown") {
		t.Errorf(`got %s; want both hints and no unknown member`, body)
	}
}

func TestSearchList_HidesSuspendedTenant(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.upstreams.Update(func() { h.upstreams.hits = 8 })
	h.mustSearch(h.requestBody("Kabul"))
	h.Suspend(tenantID(1))
	a := h.mustSearch(h.requestBody("Kabul"))
	if a.Header.Get("X-Cache") != "HIT" || len(a.body.Listings) != 7 || a.body.ResultCount != 34 {
		t.Errorf("got %s, %d cards of %d; want HIT, 7 cards of 34", a.Header.Get("X-Cache"), len(a.body.Listings), a.body.ResultCount)
	}
}

func TestSearchList_FirstVisitWarmHitUsesTwoRedisRoundTrips(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.mustSearch(h.requestBody("Kabul"))
	queries := h.Deps.DB.Stat().AcquireCount()
	h.RoundTrips.TakeCount()
	a := h.mustSearch(h.requestBody("Kabul"), "DNT", "1") // without telemetry there is no write to Postgres
	if n := h.RoundTrips.TakeCount(); n != 2 || a.Header.Get("X-Cache") != "HIT" || a.SessionCookie() == "" {
		t.Errorf("got %s in %d round trips; want HIT in 2", a.Header.Get("X-Cache"), n)
	}
	if n := h.Deps.DB.Stat().AcquireCount() - queries; n != 0 {
		t.Errorf("got %d uses of Postgres; want 0", n)
	}
}

func TestSearchList_EventsContainNoPersonalData(t *testing.T) {
	t.Parallel()
	h := newHarnessWithFlags(t, samplingOn)
	a := h.mustSearch(h.requestBody("canary-place", `"occupancy"`, `"filters":{"amenities":["wifi","canary-amenity"],"neighbourhoods":["canary street"]},"occupancy"`),
		"X-Forwarded-For", "203.0.113.77", "User-Agent", "canary-agent/1.0", "X-Campaign-Source", "canary sentence", "X-Client-Timezone", "canary/zone")
	started, executed := h.Messages("session.started"), h.Messages("search.executed")
	if len(started) != 1 || len(executed) != 1 {
		t.Fatalf("got %d started, %d executed; want 1 of each", len(started), len(executed))
	}
	for _, message := range slices.Concat(started, executed) {
		var e event.Event
		if err := e.UnmarshalJSON(message); err != nil {
			t.Fatal(err)
		}
		if err := strict.Validate(e); err != nil {
			t.Errorf("got error %v in %s; want none", err, message)
		}
		for _, canary := range []string{"canary", "203.0.113", "192.0.2.1"} {
			if strings.Contains(string(message), canary) {
				t.Errorf("found %q in %s", canary, message)
			}
		}
	}
	if s := string(executed[0]); !strings.Contains(s, a.body.SearchSessionID) || !strings.Contains(s, `"Kabul"`) {
		t.Errorf(`got %s; want the search session %v and the city`, s, a.body.SearchSessionID)
	}
	for _, canary := range []string{"canary", "203.0.113", a.SessionCookie()} {
		if strings.Contains(h.Log.String(), canary) {
			t.Errorf("found %q in the log", canary)
		}
	}
}

func TestSearchList_NoConsentWritesNoEvents(t *testing.T) {
	t.Parallel()
	h := newHarnessWithFlags(t, samplingOn)
	cookie := h.mustSearch(h.requestBody("Kabul"), "DNT", "1").SessionCookie()
	h.mustSearch(h.requestBody("Kabul"), "Cookie", "gms_id="+cookie)
	var n int
	if err := h.DB.QueryRow(t.Context(), `SELECT count(*) FROM bff_consumer.outbox`).Scan(&n); err != nil || n != 0 {
		t.Errorf("got %d rows, error %v; want none", n, err)
	}
}

func TestSearchList_QuotesFirstTwentyCards(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.upstreams.Update(func() { h.upstreams.hits = 30 })
	a := h.mustSearch(h.requestBody("Kabul", `"occupancy"`, `"page":{"limit":50},"occupancy"`))
	rated := 0
	for _, card := range a.body.Listings {
		if card.RateSnapshot != nil {
			rated++
		}
	}
	if rated != 20 || h.upstreams.Calls("pricing") != 1 {
		t.Errorf("got %d cards with a rate in %d batches; want 20 in 1", rated, h.upstreams.Calls("pricing"))
	}
}
