package telemetry

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"melmastoon.ghasi.io/bff-consumer/shared/event"
	"melmastoon.ghasi.io/bff-consumer/shared/id"
	"melmastoon.ghasi.io/bff-consumer/shared/timestamp"
	"melmastoon.ghasi.io/bff-consumer/shared/web"
	"melmastoon.ghasi.io/bff-consumer/shared/wiring"
)

func routes(p *wiring.Deps) map[string]web.Handler {
	h := NewHandlers(p)
	return map[string]web.Handler{
		"POST " + web.BasePath + "/telemetry/click":     h.Click,
		"POST " + web.BasePath + "/telemetry/page-view": h.PageView,
		"POST " + web.BasePath + "/telemetry/funnel":    h.Funnel,
	}
}

func clickBody(n int, more ...string) string {
	return fmt.Sprintf(`{"kind":"listing-card","tenantId":%q,"propertyId":%q%s}`, tenantID(n), propertyID(n), strings.Join(more, ""))
}

func batchBody(events ...string) string { return `{"events":[` + strings.Join(events, ",") + `]}` }

// mustSend sends reports, fails the test unless want of them are accepted, and returns the
// session's id.
func (h *harness) mustSend(want int, path, cookie, body string, headers ...string) string {
	h.T.Helper()
	a := h.MustDo(202, "POST", "/telemetry/"+path, cookie, body, headers...)
	var got struct{ Accepted int }
	a.Decode(h.T, &got)
	if got.Accepted != want {
		h.T.Errorf("%s: got %d accepted; want %d", path, got.Accepted, want)
	}
	return a.SessionCookie()
}

// newGuest begins a session and returns its id.
func (h *harness) newGuest(headers ...string) string {
	h.T.Helper()
	return h.MustDo(202, "POST", "/telemetry/funnel", "", `{"step":"map.opened"}`, headers...).SessionCookie()
}

type viewedEntry struct{ PropertyID, TenantID, ViewedAt, Source string }

// recentlyViewed returns the recently viewed properties in Redis, newest first.
func (h *harness) recentlyViewed(cookie string) (list []viewedEntry) {
	h.T.Helper()
	texts, err := h.RDB.LRange(context.Background(), h.Deps.Keys.SessionPart(cookie, "recent"), 0, -1).Result()
	if err != nil {
		h.T.Fatal(err)
	}
	for _, text := range texts {
		var v viewedEntry
		if err := json.Unmarshal([]byte(text), &v); err != nil {
			h.T.Fatal(err)
		}
		list = append(list, v)
	}
	return list
}

func TestTelemetryClick_RecordsEventAndView(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	srs := id.New(id.SearchSession, h.Now())
	at := h.Now().Add(-time.Second)
	cookie := h.newGuest()
	h.mustSend(1, "click", cookie, clickBody(3, `,"position":3,"page":1,"sortKey":"recommended","searchSessionId":"`+srs+`","occurredAt":"`+at.Format(time.RFC3339Nano)+`"`))
	e := h.Events("click.recorded")[0]
	if p := e.Payload.(event.ClickRecorded); p.GuestSessionID != cookie || p.Kind != "listing-card" || p.TenantID != tenantID(3) || p.PropertyID != propertyID(3) ||
		p.Position != 3 || p.Page != 1 || p.SortKey != "recommended" || p.SearchSessionID != srs || !p.OccurredAt.Equal(at) || !e.OccurredAt.Equal(at) {
		t.Errorf(`got %+v; want GuestSessionID = %v, Kind = "listing-card", TenantID = %v, PropertyID = %v, Position = 3, Page = 1, SortKey = "recommended", SearchSessionID = %v, OccurredAt = %v`, e, cookie, tenantID(3), propertyID(3), srs, at)
	}
	want := viewedEntry{propertyID(3), tenantID(3), timestamp.Format(at), "search-list"}
	if got := h.recentlyViewed(cookie); len(got) != 1 || got[0] != want {
		t.Errorf("got %+v; want len(got) = 1, got[0] = %v", got, want)
	}
	for kind, source := range viewSourceByKind {
		t.Run(kind, func(t *testing.T) {
			h.mustSend(1, "click", cookie, strings.Replace(clickBody(4), "listing-card", kind, 1))
			if got := h.recentlyViewed(cookie); len(got) != 2 || got[0].Source != source {
				t.Errorf("got %+v; want len(got) = 2, got[0].Source = %v", got, source)
			}
		})
	}
}

func TestTelemetryPageView_RecordsEventAndView(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	cookie := h.newGuest()
	h.mustSend(1, "page-view", cookie, `{"path":"/search?city=canary#x","referer":"https://www.example.com/inbox?to=canary"}`)
	h.mustSend(1, "page-view", cookie, fmt.Sprintf(`{"path":"/fa/hotels/%s","propertyId":%q,"tenantId":%q}`, propertyID(1), propertyID(1), tenantID(1)))
	h.mustSend(1, "page-view", cookie, `{"path":"/hotels/`+propertyID(2)+`/rooms"}`)
	h.mustSend(1, "page-view", cookie, `{"path":"/hotels/کابل"}`)
	var views []event.PageViewed
	for _, e := range h.Events("page.viewed") {
		views = append(views, e.Payload.(event.PageViewed))
	}
	if len(views) != 4 {
		t.Fatalf("got %d page views; want 4", len(views))
	}
	if v := views[0]; v.Path != "/search" || v.Referer != "https://www.example.com/inbox" || v.PropertyID != "" || !strings.HasPrefix(v.UserAgentHash, "sha256:") || v.FingerprintHash == "" || !id.Valid(id.PageView, v.ID) {
		t.Errorf(`got %+v; want Path = "/search", Referer = "https://www.example.com/inbox", no property, valid hashes and id`, v)
	}
	if v := views[3]; v.Path != "/hotels/_" || v.PropertyID != "" {
		t.Errorf(`got %+v; want Path = "/hotels/_", PropertyID = ""`, v)
	}
	got := h.recentlyViewed(cookie)
	if len(got) != 2 || got[0].PropertyID != propertyID(2) || got[0].TenantID != "" || got[1].PropertyID != propertyID(1) || got[1].TenantID != tenantID(1) || got[1].Source != "detail-link" {
		t.Errorf(`got %+v; want len(got) = 2, got[0].PropertyID = %v, got[0].TenantID = "", got[1].PropertyID = %v, got[1].TenantID = %v, got[1].Source = "detail-link"`, got, propertyID(2), propertyID(1), tenantID(1))
	}
}

func TestTelemetryFunnel_RecordsEvent(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	cookie := h.newGuest()
	h.mustSend(1, "funnel", cookie, `{"step":"list.scrolled-50pct","metadata":{"cards":20,"filtered":true,"layout":"two-columns"},"propertyId":"`+propertyID(1)+`","tenantId":"`+tenantID(1)+`"}`)
	p := h.Events("funnel.step_recorded")[1].Payload.(event.FunnelStepRecorded)
	if p.Step != "list.scrolled-50pct" || p.Metadata["cards"] != 20.0 || p.Metadata["filtered"] != true || p.Metadata["layout"] != "two-columns" || !id.Valid(id.Funnel, p.ID) {
		t.Errorf(`got %+v; want Step = "list.scrolled-50pct", Metadata["cards"] = 20.0, Metadata["filtered"] = true, Metadata["layout"] = "two-columns", id.Valid(id.Funnel, p.ID)`, p)
	}
	if len(h.recentlyViewed(cookie)) != 0 {
		t.Error("a funnel step was recorded as a view")
	}
}

func TestTelemetry_BatchIsAllOrNothing(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	cookie := h.newGuest()
	var events []string
	for n := range 50 {
		at := h.Now().Add(-time.Duration(50-n) * 10 * time.Millisecond)
		events = append(events, clickBody(n, `,"occurredAt":"`+at.Format(time.RFC3339Nano)+`"`))
	}
	slices.Reverse(events) // the order in the request must not matter
	h.mustSend(50, "click", cookie, batchBody(events...))
	if n := len(h.Events("click.recorded")); n != 50 {
		t.Errorf("got %d events; want 50", n)
	}
	if got := h.recentlyViewed(cookie); len(got) != 50 || got[0].PropertyID != propertyID(49) || got[49].PropertyID != propertyID(0) {
		t.Errorf("got %d: %+v; want len(got) = 50, got[0].PropertyID = %v, got[49].PropertyID = %v", len(got), got[0], propertyID(49), propertyID(0))
	}
	h.mustSend(2, "page-view", cookie, batchBody(`{"path":"/"}`, `{"path":"/search"}`))
	h.mustSend(1, "funnel", cookie, batchBody(`{"step":"map.opened"}`))
	before := len(h.Events(""))
	if a := h.Do("POST", "/telemetry/click", cookie, batchBody(clickBody(1), clickBody(2, `,"position":0`))); a.StatusCode != 422 || a.Errors[0].Field != "events.1.position" {
		t.Errorf(`got %d %s; want status 422, Errors[0].Field = "events.1.position"`, a.StatusCode, a.Text)
	}
	if n := len(h.Events("")); n != before {
		t.Errorf("got %d events of a refused batch; want 0", n-before)
	}
}

func TestTelemetry_EventIDDeduplicates(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	cookie, other := h.newGuest(), h.newGuest()
	before := len(h.Events(""))
	named := clickBody(1, `,"eventId":"c0ffee00-0000-4000-8000-000000000001","occurredAt":"`+h.Now().Format(time.RFC3339Nano)+`"`)
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() { h.Do("POST", "/telemetry/click", cookie, named) })
	}
	all.Wait()
	h.Advance(time.Hour)
	h.mustSend(2, "click", cookie, batchBody(named, named))
	if n := len(h.Events("")); n != before+1 {
		t.Errorf("got %d events; want 1", n-before)
	}
	// another guest
	h.mustSend(1, "click", other, named)
	// another eventId
	h.mustSend(1, "click", cookie, clickBody(1, `,"eventId":"c0ffee00-0000-4000-8000-000000000002"`))
	// another kind of report
	h.mustSend(1, "funnel", cookie, `{"step":"map.opened","eventId":"c0ffee00-0000-4000-8000-000000000001"}`)
	// no eventId
	h.mustSend(2, "click", cookie, batchBody(clickBody(1), clickBody(1)))
	// first
	h.mustSend(1, "page-view", cookie, `{"path":"/","eventId":"c0ffee00-0000-4000-8000-000000000003"}`)
	// same eventId, another path: a repetition
	h.mustSend(1, "page-view", cookie, `{"path":"/another","eventId":"c0ffee00-0000-4000-8000-000000000003"}`)
	// later, without a time
	h.Advance(10 * time.Second)
	// same eventId: a repetition
	h.mustSend(1, "page-view", cookie, `{"path":"/","eventId":"c0ffee00-0000-4000-8000-000000000003"}`)
	// a time after the session's life
	h.mustSend(1, "click", cookie, clickBody(1, `,"eventId":"far-away-1","occurredAt":"2199-01-01T00:00:00.000Z"`))
	// a repetition
	h.mustSend(1, "click", cookie, clickBody(1, `,"eventId":"far-away-1","occurredAt":"2199-01-01T00:00:00.000Z"`))
	// a time before the session
	h.mustSend(1, "click", cookie, clickBody(1, `,"eventId":"long-ago-1","occurredAt":"1969-12-31T23:59:59.000Z"`))
	// a repetition
	h.mustSend(1, "click", cookie, clickBody(1, `,"eventId":"long-ago-1","occurredAt":"1969-12-31T23:59:59.000Z"`))
	if n := len(h.Events("")); n != before+9 {
		t.Errorf("got %d events; want 9", n-before)
	}
	for _, e := range h.Events("") {
		at := id.Time(e.ID)
		if at.Before(h.Now().Add(-24*time.Hour)) || at.After(h.Now().Add(366*24*time.Hour)) {
			t.Errorf("event %s: got time %v; want within a year", e.ID, at)
		}
	}
}

func TestTelemetry_ImplausibleTimeIsReplaced(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	cookie := h.newGuest()
	h.Advance(time.Hour)
	for reported, keeps := range map[string]bool{
		h.Now().Add(-30 * time.Minute).Format(time.RFC3339Nano):                                true,
		h.Now().Add(30 * time.Second).Format(time.RFC3339Nano):                                 true,
		h.Now().Add(-30 * time.Minute).In(time.FixedZone("", 16_200)).Format(time.RFC3339Nano): true,
		h.Now().Add(2 * time.Minute).Format(time.RFC3339Nano):                                  false,
		h.Now().Add(-3 * time.Hour).Format(time.RFC3339Nano):                                   false,
		"0001-01-01T00:00:00Z": false,
		"9999-12-31T23:59:59Z": false,
	} {
		h.Exec("DELETE FROM bff_consumer.outbox")
		h.mustSend(1, "click", cookie, clickBody(1, `,"occurredAt":"`+reported+`"`))
		at := h.Events("click.recorded")[0].Payload.(event.ClickRecorded).OccurredAt
		want, err := time.Parse(time.RFC3339Nano, reported)
		if err != nil {
			t.Fatal(err)
		}
		if !keeps {
			want = h.Now()
		}
		if !at.Equal(want.Truncate(time.Millisecond)) {
			t.Errorf("reported %s: got %s; want %s", reported, at, want)
		}
	}
}

func TestTelemetryClick_RecentlyViewedIsUniqueOrderedAndCapped(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	cookie := h.newGuest()
	for n := range 60 {
		h.Advance(time.Second)
		h.mustSend(1, "click", cookie, clickBody(n))
	}
	h.mustSend(1, "click", cookie, clickBody(20))
	got := h.recentlyViewed(cookie)
	if len(got) != 50 || got[0].PropertyID != propertyID(20) || got[1].PropertyID != propertyID(59) || got[49].PropertyID != propertyID(10) {
		t.Errorf("got %d: %+v; want len(got) = 50, got[0].PropertyID = %v, got[1].PropertyID = %v, got[49].PropertyID = %v", len(got), got[:2], propertyID(20), propertyID(59), propertyID(10))
	}
	var all sync.WaitGroup
	for n := range 100 {
		all.Go(func() { h.Do("POST", "/telemetry/click", cookie, clickBody(n%30)) })
	}
	all.Wait()
	seen := map[string]bool{}
	for _, v := range h.recentlyViewed(cookie) {
		seen[v.PropertyID] = true
	}
	if got := h.recentlyViewed(cookie); len(got) != 50 || len(seen) != 50 {
		t.Errorf("got %d entries of %d properties; want 50 of 50", len(got), len(seen))
	}
}

func TestTelemetry_NoConsentWritesNothing(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	for name, headers := range map[string][]string{"DNT": {"DNT", "1"}, "GPC": {"Sec-GPC", "1"}} {
		t.Run(name, func(t *testing.T) {
			cookie := h.mustSend(0, "click", "", clickBody(1), headers...)
			h.mustSend(0, "click", cookie, batchBody(clickBody(1), clickBody(2)))
			h.mustSend(0, "page-view", cookie, `{"path":"/hotels/`+propertyID(1)+`"}`)
			h.mustSend(0, "funnel", cookie, `{"step":"map.opened"}`)
			if n := len(h.Events("")) + len(h.recentlyViewed(cookie)); n != 0 {
				t.Errorf("got %d events and viewed properties; want 0", n)
			}
		})
	}
	cookie := h.newGuest()
	before := len(h.Events(""))
	h.Exec(`INSERT INTO bff_consumer.session_choice (guest_session_id, telemetry, marketing, decided_at) VALUES ($1, false, false, now())`, cookie)
	h.RDB.FlushAll(t.Context())
	h.mustSend(0, "click", cookie, clickBody(1))
	h.RDB.FlushAll(t.Context())
	h.PostgresProxy.Break()
	// the consent is unknown, so no event is buffered
	h.MustDo(503, "POST", "/telemetry/click", cookie, clickBody(1))
	h.PostgresProxy.Heal()
	h.Eventually("Postgres is back", func() bool { return h.Deps.DB.Ping(context.Background()) == nil })
	if n := h.RDB.LLen(t.Context(), h.Deps.Keys.Key("outbox", "spill")).Val(); n != 0 || len(h.Events("")) != before || len(h.recentlyViewed(cookie)) != 0 {
		t.Errorf("got %d buffered, %d written events; want none", n, len(h.Events(""))-before)
	}
}

func TestTelemetry_StoreOutageBuffersOrAnswers503(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	cookie := h.newGuest()
	spill := func() int64 { return h.RDB.LLen(t.Context(), h.Deps.Keys.Key("outbox", "spill")).Val() }
	for name, breakPostgres := range map[string]func(){"broken": h.PostgresProxy.Break, "hanging": h.PostgresProxy.Hang} {
		t.Run(name, func(t *testing.T) {
			before := spill()
			breakPostgres()
			h.mustSend(2, "click", cookie, batchBody(clickBody(1), clickBody(2)))
			if n := spill() - before; n != 2 {
				t.Errorf("got %d buffered events; want 2", n)
			}
			if a := h.MustDo(202, "POST", "/telemetry/funnel", "", `{"step":"map.opened"}`); a.SessionCookie() == "" {
				t.Errorf("first request: got no cookie")
			}
			h.PostgresProxy.Heal()
			h.Eventually("Postgres is back", func() bool { return h.Deps.DB.Ping(context.Background()) == nil })
		})
	}
	h.Eventually("a row in the outbox after Postgres is back", func() bool {
		n := h.Count("outbox")
		h.Do("POST", "/telemetry/click", cookie, clickBody(1))
		return h.Count("outbox") > n
	})
	h.Redis.Stop()
	before := h.Count("outbox")
	h.mustSend(1, "click", cookie, clickBody(1, `,"eventId":"eventually-1"`))
	if n := h.Count("outbox") - before; n != 1 {
		t.Errorf("without Redis: got %d events; want 1", n)
	}
	h.PostgresProxy.Break()
	a := h.Do("POST", "/telemetry/click", cookie, clickBody(1, `,"eventId":"eventually-2"`))
	if a.StatusCode != 503 || a.Header.Get("Retry-After") == "" {
		t.Errorf("without both stores: got %d %s; want 503 with Retry-After", a.StatusCode, a.Text)
	}
	h.PostgresProxy.Heal()
	h.Eventually("the repeated report is accepted", func() bool {
		return h.Do("POST", "/telemetry/click", cookie, clickBody(1, `,"eventId":"eventually-2"`)).StatusCode == 202
	})
	if n := h.Count("outbox") - before; n != 2 {
		t.Errorf("got %d events; want 2", n)
	}
}

func TestTelemetry_AcceptsBeaconMediaTypes(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	cookie := h.newGuest()
	for media, want := range map[string]int{
		"application/json": 202, "text/plain;charset=UTF-8": 202, "text/plain": 202, "": 202, "application/json; charset=utf-8": 202,
		"application/x-www-form-urlencoded": 400, "multipart/form-data": 400, "text/html": 400, "text/plain; charset=utf-16": 400,
	} {
		for path, body := range map[string]string{"click": clickBody(1), "page-view": `{"path":"/"}`, "funnel": `{"step":"map.opened"}`} {
			if a := h.Do("POST", "/telemetry/"+path, cookie, body, "Content-Type", media); a.StatusCode != want {
				t.Errorf("%s as %q: got %d %s; want status %v", path, media, a.StatusCode, a.Text, want)
			}
		}
	}
}

func TestTelemetry_BatchUsesTwoRedisRoundTripsAndOneConnection(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	cookie := h.newGuest()
	h.mustSend(1, "click", cookie, clickBody(1))
	uses := h.Deps.DB.Stat().AcquireCount()
	h.RoundTrips.TakeCount()
	h.mustSend(3, "click", cookie, batchBody(clickBody(1), clickBody(2), clickBody(3)))
	if n := h.RoundTrips.TakeCount(); n != 2 {
		t.Errorf("got %d round trips of Redis; want 2", n)
	}
	if n := h.Deps.DB.Stat().AcquireCount() - uses; n != 1 {
		t.Errorf("got %d uses of Postgres; want 1", n)
	}
}
