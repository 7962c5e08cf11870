package session

import (
	"context"
	"fmt"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"melmastoon.ghasi.io/bff-consumer/shared/event"
	"melmastoon.ghasi.io/bff-consumer/shared/id"
	"melmastoon.ghasi.io/bff-consumer/shared/session"
	"melmastoon.ghasi.io/bff-consumer/shared/stay"
	"melmastoon.ghasi.io/bff-consumer/shared/testkit/functest"
	"melmastoon.ghasi.io/bff-consumer/shared/web"
	"melmastoon.ghasi.io/bff-consumer/shared/wiring"
	"melmastoon.ghasi.io/bff-consumer/shared/wishlist"
)

func routes(p *wiring.Deps) map[string]web.Handler {
	h := NewHandlers(p)
	return map[string]web.Handler{
		"GET " + web.BasePath + "/session":           h.Show,
		"POST " + web.BasePath + "/session/locale":   h.Locale,
		"POST " + web.BasePath + "/session/currency": h.Currency,
		"POST " + web.BasePath + "/session/consent":  h.Consent,
		"POST " + web.BasePath + "/session/clear":    h.Clear,
		"GET " + web.BasePath + "/session/export":    h.Export,
	}
}

// sessionBody is the body of GET /session.
type sessionBody struct {
	ID, CreatedAt, LastSeenAt, LocalePreference, CurrencyPreference string
	RecentlyViewed                                                  []struct{ PropertyID, TenantID, ViewedAt, Source string }
	WishlistRefs                                                    []struct{ WishlistID, PropertyID, TenantID, AddedAt string }
	SearchHistory                                                   []struct{ SearchSessionID, QueryHash string }
	CampaignAttribution                                             *struct{ Source, Medium, Campaign, CapturedAt string }
	Flags                                                           struct{ ConsentTelemetry, ConsentMarketing bool }
	Degraded                                                        []struct{ Part, Reason string }
}

func (h *harness) getSession(cookie string, headers ...string) (s sessionBody) {
	h.T.Helper()
	h.MustDo(200, "GET", "/session", cookie, "", headers...).Decode(h.T, &s)
	return s
}

// newGuest begins a session and returns its id.
func (h *harness) newGuest(headers ...string) string {
	h.T.Helper()
	return h.MustDo(200, "GET", "/session", "", "", headers...).SessionCookie()
}

// runRequest runs a request of another function: guest.Begin, work, guest.Finish. It calls work
// twice, first with a pipeline that is never sent, for its history entry.
func (h *harness) runRequest(cookie string, work func(ctx context.Context, s *session.Session, pipe redis.Pipeliner) *session.HistoryEntry) {
	r := httptest.NewRequest("POST", "/search", nil)
	r.Header.Set("User-Agent", functest.Firefox)
	r.Header.Set("Cookie", "gms_id="+cookie)
	ctx, guest, err := h.Deps.Guests.Begin(httptest.NewRecorder(), r, nil)
	if err != nil {
		h.T.Error(err)
		return
	}
	guest.Record(ctx, event.ClickRecorded{
		GuestSessionID: guest.ID, Kind: "map-pin", TenantID: tenantID(1), PropertyID: propertyID(1), OccurredAt: guest.LastSeenAt,
	}, 1)
	history := work(ctx, guest.Session, h.Deps.Redis.Pipeline())
	h.Deps.Guests.Finish(ctx, httptest.NewRecorder(), guest, history, func(pipe redis.Pipeliner) { work(ctx, guest.Session, pipe) })
}

// populate stores every kind of data for a session.
func (h *harness) populate(cookie string) {
	h.T.Helper()
	h.runRequest(cookie, func(ctx context.Context, s *session.Session, pipe redis.Pipeliner) *session.HistoryEntry {
		search, _ := s.ResumeSearch("sha256:"+strings.Repeat("a", 64), h.Now())
		h.Deps.Sessions.EnqueueViewed(ctx, pipe, s, session.ViewedProperty{PropertyID: propertyID(1), TenantID: tenantID(1), ViewedAt: "2026-04-23T09:14:22.041Z", Source: "search-map"})
		h.Deps.Sessions.EnqueueSearch(ctx, pipe, session.SearchSession{
			ID: search, GuestSessionID: s.ID, QueryHash: "sha256:" + strings.Repeat("a", 64), Query: []byte(`{"city":"Kabul"}`), Locale: "en", Currency: "USD",
		}, true)
		return h.historyEntry(search)
	})
	store := wishlist.New(h.Deps.Redis, h.Deps.DB, h.Deps.Keys, h.Now)
	for n := range 2 {
		w := wishlist.AddRequest{PropertyID: propertyID(n), TenantID: tenantID(n), Source: "map", Note: "note of mine"}
		e := event.New(event.Meta{SessionID: cookie, Now: h.Now()}, event.WishlistAdded{
			GuestSessionID: cookie, TenantID: w.TenantID, PropertyID: w.PropertyID, Source: w.Source,
		})
		if _, err := store.Add(context.Background(), cookie, w, e); err != nil {
			h.T.Error(err)
		}
	}
	h.Exec(`INSERT INTO bff_consumer.idempotency_keys
		(composite_key, guest_session_id, route, request_digest, response_status, response_body, expires_at)
		VALUES ($1, $2, 'POST /handoff', '\x00', 201, '"secret-token"', now() + interval '1 day')`, "c-"+cookie, cookie)
	h.RDB.Set(context.Background(), h.Deps.Keys.Key("idem", "c-"+cookie), "secret-token", time.Hour)
	tenant, _ := id.UUID(id.Tenant, tenantID(1))
	property, _ := id.UUID(id.Property, propertyID(1))
	h.Exec(`INSERT INTO bff_consumer.handoff_replay_log
		(id, guest_session_id, tenant_id, property_id, check_in, check_out, adults, children, rooms, currency, locale, hmac_key_id,
		 fingerprint_hash, ip_hash, minted_at, expires_at, children_ages, source_campaign)
		VALUES ($1, $2, $3, $4, '2026-12-01', '2026-12-04', 2, 1, 1, 'AFN', 'ps-AF', 'hmac-2026-11', '\x01', '\x02', now(), now() + interval '30 minutes', '{7}',
		 '{"source":"google","capturedAt":"2026-04-23T13:44:22.041666777+04:30"}')`,
		id.New(id.Handoff, h.Now()), cookie, tenant, property)
	h.Exec(`INSERT INTO bff_consumer.bot_score_log
		(id, guest_session_id, fingerprint_hash, ip_hash, user_agent_hash, score, verdict, signals, action_taken)
		VALUES ($1, $2, '\x01', '\x02', '\x03', 0.5, 'suspect', '[{"kind":"cadence","weight":0.3}]', 'challenge')`, id.New(id.BotScore, h.Now()), cookie)
}

// historyEntry returns an entry of the search history.
func (h *harness) historyEntry(search string) *session.HistoryEntry {
	return &session.HistoryEntry{
		SearchSessionID: search, QueryHash: "sha256:" + strings.Repeat("a", 64), Geo: map[string]string{"mode": "city", "city": "Kabul"},
		Dates:     stay.Dates{CheckIn: dateInDays(h, 10), CheckOut: dateInDays(h, 12)},
		Occupancy: stay.Occupancy{Adults: 2, Rooms: 1}, ExecutedAt: "2026-04-23T09:14:22.041Z",
	}
}

func dateInDays(h *harness, days int) (d stay.Date) {
	if err := d.UnmarshalText([]byte(h.Now().AddDate(0, 0, days).Format(time.DateOnly))); err != nil {
		h.T.Fatal(err)
	}
	return d
}

func TestSessionShow_ContainsStoredData(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	cookie := h.newGuest("Accept-Language", "ps-AF", "X-Client-Geo-Country", "AF", "X-Campaign-Source", "google")
	h.populate(cookie)
	h.Advance(time.Minute)
	a := h.MustDo(200, "GET", "/session", cookie, "")
	var s sessionBody
	a.Decode(t, &s)
	if s.ID != cookie || s.LocalePreference != "ps-AF" || s.CurrencyPreference != "AFN" || s.CreatedAt >= s.LastSeenAt ||
		!s.Flags.ConsentTelemetry || s.Flags.ConsentMarketing || s.CampaignAttribution == nil || s.CampaignAttribution.Source != "google" {
		t.Errorf(`got %s; want ID = %v, LocalePreference = "ps-AF", CurrencyPreference = "AFN", CreatedAt < %v, Flags.ConsentTelemetry, not Flags.ConsentMarketing, CampaignAttribution set, CampaignAttribution.Source = "google"`, a.Text, cookie, s.LastSeenAt)
	}
	if len(s.RecentlyViewed) != 1 || s.RecentlyViewed[0].PropertyID != propertyID(1) || s.RecentlyViewed[0].Source != "search-map" {
		t.Errorf("recently viewed: got %+v; want property 1 from search-map", s.RecentlyViewed)
	}
	if len(s.WishlistRefs) != 2 || s.WishlistRefs[0].PropertyID != propertyID(1) || len(s.SearchHistory) != 1 || len(s.Degraded) != 0 {
		t.Errorf("got %s; want len(WishlistRefs) = 2, WishlistRefs[0].PropertyID = %v, len(SearchHistory) = 1, len(Degraded) = 0", a.Text, propertyID(1))
	}
	for _, hidden := range []string{"ingerprint", "binding", "note of mine", "sha256:" + strings.Repeat("0", 8)} {
		if strings.Contains(a.Text, hidden) {
			t.Errorf("found %q in the answer", hidden)
		}
	}
	if n := h.RDB.LLen(t.Context(), h.Deps.Keys.SessionPart(cookie, "wishlist")).Val(); n != 2 {
		t.Errorf("repaired copy: got %d entries; want 2", n)
	}
}

func TestSessionShow_UsesOneRoundTripPerStore(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	cookie := h.newGuest()
	h.getSession(cookie)
	uses := h.Deps.DB.Stat().AcquireCount()
	h.RoundTrips.TakeCount()
	h.getSession(cookie)
	// the session was saved within the minute and the copy is complete
	if n := h.RoundTrips.TakeCount(); n != 1 {
		t.Errorf("got %d round trips of Redis; want 1", n)
	}
	if n := h.Deps.DB.Stat().AcquireCount() - uses; n != 1 {
		t.Errorf("got %d uses of Postgres; want 1", n)
	}
}

func TestSessionPreferences_ExplicitChoicePersists(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	cookie := h.newGuest("Accept-Language", "fr", "X-Client-Geo-Country", "AF")
	var s sessionBody
	h.MustDo(200, "POST", "/session/locale", cookie, `{"locale":"ps-AF"}`).Decode(t, &s)
	if s.LocalePreference != "ps-AF" {
		t.Errorf(`got %+v; want LocalePreference = "ps-AF"`, s)
	}
	h.MustDo(200, "POST", "/session/currency", cookie, `{"currency":"IRR"}`).Decode(t, &s)
	if s.CurrencyPreference != "IRR" {
		t.Errorf(`got %+v; want CurrencyPreference = "IRR"`, s)
	}
	s = h.getSession(cookie, "Accept-Language", "ar", "X-Currency", "EUR", "X-Client-Geo-Country", "AE")
	if s.LocalePreference != "ps-AF" || s.CurrencyPreference != "IRR" {
		t.Errorf("with other headers: got %+v; want ps-AF and IRR", s)
	}
	h.MustDo(200, "POST", "/session/locale", cookie, `{"locale":"ps-AF"}`) // no change, no event
	locales, currencies := h.Events("locale.changed"), h.Events("currency.changed")
	if len(locales) != 1 || len(currencies) != 1 {
		t.Fatalf("got %d and %d events; want 1 and 1", len(locales), len(currencies))
	}
	l, c := locales[0].Payload.(event.LocaleChanged), currencies[0].Payload.(event.CurrencyChanged)
	if l.PreviousLocale != "fr" || l.NewLocale != "ps-AF" || l.Trigger != "user-explicit" || l.GuestSessionID != cookie {
		t.Errorf(`got %+v; want PreviousLocale = "fr", NewLocale = "ps-AF", Trigger = "user-explicit", GuestSessionID = %v`, l, cookie)
	}
	if c.PreviousCurrency != "AFN" || c.NewCurrency != "IRR" || c.Trigger != "user-explicit" {
		t.Errorf(`got %+v; want PreviousCurrency = "AFN", c.NewCurrency = "IRR", c.Trigger = "user-explicit"`, c)
	}
}

func TestSessionPreferences_FirstRequestMaySetLocale(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	a := h.MustDo(200, "POST", "/session/locale", "", `{"locale":"fa-AF"}`, "Accept-Language", "fr")
	if s := h.getSession(a.SessionCookie(), "Accept-Language", "fr"); s.LocalePreference != "fa-AF" {
		t.Errorf(`got %+v; want LocalePreference = "fa-AF"`, s)
	}
	if n := len(h.Events("locale.changed")); n != 0 {
		t.Errorf("got %d locale.changed events for a new session; want 0", n)
	}
	if alias := h.MustDo(200, "POST", "/session/locale", a.SessionCookie(), `{"locale":"prs"}`); !strings.Contains(alias.Text, `"localePreference":"fa-AF"`) {
		t.Errorf(`got %s; want localePreference fa-AF`, alias.Text)
	}
}

func TestSessionPreferences_HeadersChangeImplicitValues(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	cookie := h.newGuest("Accept-Language", "fr", "X-Client-Geo-Country", "AF")
	var all sync.WaitGroup
	for range 10 { // a page sends many requests at once
		all.Go(func() {
			h.Do("GET", "/session", cookie, "", "Accept-Language", "ar", "X-Client-Geo-Country", "AE")
		})
	}
	all.Wait()
	h.getSession(cookie, "X-Currency", "EUR", "Accept-Language", "ar")
	locales, currencies := h.Events("locale.changed"), h.Events("currency.changed")
	if len(locales) != 1 || len(currencies) != 2 {
		t.Fatalf("got %d and %d events; want 1 and 2", len(locales), len(currencies))
	}
	if l := locales[0].Payload.(event.LocaleChanged); l.Trigger != "accept-language" || l.PreviousLocale != "fr" || l.NewLocale != "ar" {
		t.Errorf(`got %+v; want Trigger = "accept-language", PreviousLocale = "fr", NewLocale = "ar"`, l)
	}
	if c := currencies[0].Payload.(event.CurrencyChanged); c.Trigger != "geo-ip" || c.PreviousCurrency != "AFN" || c.NewCurrency != "AED" {
		t.Errorf(`got %+v; want Trigger = "geo-ip", c.PreviousCurrency = "AFN", c.NewCurrency = "AED"`, c)
	}
	if c := currencies[1].Payload.(event.CurrencyChanged); c.Trigger != "user-explicit" || c.NewCurrency != "EUR" {
		t.Errorf(`got %+v; want Trigger = "user-explicit", c.NewCurrency = "EUR"`, c)
	}
}

func TestSession_StoreOutageDegradesOrAnswers503(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	cookie := h.newGuest()
	h.populate(cookie)
	h.getSession(cookie)
	for name, breakPostgres := range map[string]func(){"broken": h.PostgresProxy.Break, "hanging": h.PostgresProxy.Hang} {
		t.Run(name, func(t *testing.T) {
			breakPostgres()
			if s := h.getSession(cookie); len(s.WishlistRefs) != 2 || len(s.Degraded) != 1 || s.Degraded[0].Part != "wishlist" {
				t.Errorf(`got %+v; want len(WishlistRefs) = 2, len(Degraded) = 1, Degraded[0].Part = "wishlist"`, s)
			}
			before := h.RDB.LLen(t.Context(), h.Deps.Keys.Key("outbox", "spill")).Val()
			for _, l := range []string{"ar", "fr"} {
				h.MustDo(200, "POST", "/session/locale", cookie, `{"locale":"`+l+`"}`)
			}
			if n := h.RDB.LLen(t.Context(), h.Deps.Keys.Key("outbox", "spill")).Val(); n != before+2 {
				t.Errorf("got %d buffered events; want %d", n, before+2)
			}
			for _, c := range [][3]string{{"POST", "/session/consent", `{"consentTelemetry":false}`}, {"POST", "/session/clear", ""}, {"GET", "/session/export", ""}} {
				a := h.Do(c[0], c[1], cookie, c[2])
				if a.StatusCode != 503 || a.Header.Get("Retry-After") == "" {
					t.Errorf("%s: got %d %s; want status 503, non-empty Retry-After", c[1], a.StatusCode, a.Text)
				}
			}
			h.PostgresProxy.Heal()
			h.Eventually("Postgres is back", func() bool { return h.Deps.DB.Ping(context.Background()) == nil })
		})
	}
	h.Redis.Stop()
	s := h.getSession(cookie)
	if s.ID != cookie || len(s.WishlistRefs) != 2 || len(s.RecentlyViewed) != 0 || s.Degraded[0].Part != "session" {
		t.Errorf("without Redis: got %+v; want the wishlist and session degraded", s)
	}
	for _, c := range [][3]string{{"POST", "/session/locale", `{"locale":"ar"}`}, {"POST", "/session/currency", `{"currency":"AED"}`}, {"POST", "/session/clear", ""}, {"GET", "/session/export", ""}} {
		if a := h.Do(c[0], c[1], cookie, c[2]); a.StatusCode != 503 {
			t.Errorf("without Redis: %s: got %d %s; want 503", c[1], a.StatusCode, a.Text)
		}
	}
	h.PostgresProxy.Break()
	if s := h.getSession(cookie); s.ID != cookie || len(s.Degraded) != 2 {
		t.Errorf("without both stores: got %+v; want two degraded parts", s)
	}
	if a := h.MustDo(200, "GET", "/session", "", ""); a.SessionCookie() == "" {
		t.Error("first request without both stores: got no cookie")
	}
}

func TestSessionShow_RecentlyViewedIsCappedAtFifty(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	cookie := h.newGuest()
	h.runRequest(cookie, func(ctx context.Context, s *session.Session, pipe redis.Pipeliner) *session.HistoryEntry {
		for n := range 60 {
			h.Deps.Sessions.EnqueueViewed(ctx, pipe, s, session.ViewedProperty{PropertyID: propertyID(n), TenantID: tenantID(n), ViewedAt: fmt.Sprintf("2026-04-23T09:14:22.%03dZ", n), Source: "detail-link"})
		}
		return nil
	})
	if s := h.getSession(cookie); len(s.RecentlyViewed) != 50 || s.RecentlyViewed[0].PropertyID != propertyID(59) || s.RecentlyViewed[49].PropertyID != propertyID(10) {
		t.Errorf("got %d: %+v; want len(RecentlyViewed) = 50, RecentlyViewed[0].PropertyID = %v, RecentlyViewed[49].PropertyID = %v", len(s.RecentlyViewed), s.RecentlyViewed, propertyID(59), propertyID(10))
	}
}
