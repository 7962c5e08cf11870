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
	"melmastoon.ghasi.io/bff-consumer/shared/functest"
	"melmastoon.ghasi.io/bff-consumer/shared/id"
	"melmastoon.ghasi.io/bff-consumer/shared/session"
	"melmastoon.ghasi.io/bff-consumer/shared/setup"
	"melmastoon.ghasi.io/bff-consumer/shared/stay"
	"melmastoon.ghasi.io/bff-consumer/shared/web"
	"melmastoon.ghasi.io/bff-consumer/shared/wishlist"
)

func routes(p *setup.Parts) map[string]web.Handler {
	d := NewDesk(p)
	return map[string]web.Handler{
		"GET " + web.Base + "/session":           d.Show,
		"POST " + web.Base + "/session/locale":   d.Locale,
		"POST " + web.Base + "/session/currency": d.Currency,
		"POST " + web.Base + "/session/consent":  d.Consent,
		"POST " + web.Base + "/session/clear":    d.Clear,
		"GET " + web.Base + "/session/export":    d.Export,
	}
}

// seen is the body of GET /session.
type seen struct {
	ID, CreatedAt, LastSeenAt, LocalePreference, CurrencyPreference string
	RecentlyViewed                                                  []struct{ PropertyID, TenantID, ViewedAt, Source string }
	WishlistRefs                                                    []struct{ WishlistID, PropertyID, TenantID, AddedAt string }
	SearchHistory                                                   []struct{ SearchSessionID, QueryHash string }
	CampaignAttribution                                             *struct{ Source, Medium, Campaign, CapturedAt string }
	Flags                                                           struct{ ConsentTelemetry, ConsentMarketing bool }
	Degraded                                                        []struct{ Part, Reason string }
}

func (h *house) session(cookie string, headers ...string) (s seen) {
	h.T.Helper()
	h.Must(200, "GET", "/session", cookie, "", headers...).Into(h.T, &s)
	return s
}

// guest is a session that exists.
func (h *house) guest(headers ...string) string {
	h.T.Helper()
	return h.Must(200, "GET", "/session", "", "", headers...).Cookie()
}

// visit is what another function does for a guest: it admits, works, and leaves.
func (h *house) visit(cookie string, work func(ctx context.Context, s *session.Session, pipe redis.Pipeliner) *session.HistoryEntry) {
	r := httptest.NewRequest("POST", "/search", nil)
	r.Header.Set("User-Agent", functest.Firefox)
	r.Header.Set("Cookie", "gms_id="+cookie)
	ctx, guest, err := h.Parts.Door.Admit(httptest.NewRecorder(), r, nil)
	if err != nil {
		h.T.Error(err)
		return
	}
	guest.Record(ctx, event.ClickRecorded{
		GuestSessionID: guest.ID, Kind: "map-pin", TenantID: tenantID(1), PropertyID: propertyID(1), OccurredAt: guest.LastSeenAt,
	}, 1)
	probe := h.Parts.Redis.Pipeline()
	history := work(ctx, guest.Session, probe)
	h.Parts.Door.Leave(ctx, httptest.NewRecorder(), guest, history, func(pipe redis.Pipeliner) { work(ctx, guest.Session, pipe) })
}

// live gives a guest something of everything.
func (h *house) live(cookie string) {
	h.T.Helper()
	h.visit(cookie, func(ctx context.Context, s *session.Session, pipe redis.Pipeliner) *session.HistoryEntry {
		search, _ := s.Search("sha256:"+strings.Repeat("a", 64), h.Now())
		h.Parts.Sessions.PushViewed(ctx, pipe, s, session.Viewed{PropertyID: propertyID(1), TenantID: tenantID(1), ViewedAt: "2026-04-23T09:14:22.041Z", Source: "search-map"})
		h.Parts.Sessions.SaveSearch(ctx, pipe, session.Search{
			ID: search, GuestSessionID: s.ID, QueryHash: "sha256:" + strings.Repeat("a", 64), Query: []byte(`{"city":"Kabul"}`), Locale: "en", Currency: "USD",
		}, true)
		return h.searched(search)
	})
	room := wishlist.New(h.Parts.Redis, h.Parts.DB, h.Parts.Keys, h.Now)
	for n := range 2 {
		w := wishlist.Wish{PropertyID: propertyID(n), TenantID: tenantID(n), Source: "map", Note: "note of mine"}
		e := event.New(event.Meta{SessionID: cookie, Now: h.Now()}, event.WishlistAdded{
			GuestSessionID: cookie, TenantID: w.TenantID, PropertyID: w.PropertyID, Source: w.Source,
		})
		if _, err := room.Add(context.Background(), cookie, w, e); err != nil {
			h.T.Error(err)
		}
	}
	h.Exec(`INSERT INTO bff_consumer.idempotency_keys
		(composite_key, guest_session_id, route, request_digest, response_status, response_body, expires_at)
		VALUES ($1, $2, 'POST /handoff', '\x00', 201, '"secret-token"', now() + interval '1 day')`, "c-"+cookie, cookie)
	h.RDB.Set(context.Background(), h.Parts.Keys.Key("idem", "c-"+cookie), "secret-token", time.Hour)
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

// searched is a line of the history.
func (h *house) searched(search string) *session.HistoryEntry {
	return &session.HistoryEntry{
		SearchSessionID: search, QueryHash: "sha256:" + strings.Repeat("a", 64), Geo: map[string]string{"mode": "city", "city": "Kabul"},
		Dates:     stay.Dates{CheckIn: date(h, 10), CheckOut: date(h, 12)},
		Occupancy: stay.Occupancy{Adults: 2, Rooms: 1}, ExecutedAt: "2026-04-23T09:14:22.041Z",
	}
}

func date(h *house, days int) (d stay.Date) {
	if err := d.UnmarshalText([]byte(h.Now().AddDate(0, 0, days).Format(time.DateOnly))); err != nil {
		h.T.Fatal(err)
	}
	return d
}

func TestASessionShowsWhatIsKnown(t *testing.T) {
	h := newHouse(t)
	cookie := h.guest("Accept-Language", "ps-AF", "X-Client-Geo-Country", "AF", "X-Campaign-Source", "google")
	h.live(cookie)
	h.Advance(time.Minute)
	a := h.Must(200, "GET", "/session", cookie, "")
	var s seen
	a.Into(t, &s)
	if s.ID != cookie || s.LocalePreference != "ps-AF" || s.CurrencyPreference != "AFN" || s.CreatedAt >= s.LastSeenAt ||
		!s.Flags.ConsentTelemetry || s.Flags.ConsentMarketing || s.CampaignAttribution == nil || s.CampaignAttribution.Source != "google" {
		t.Errorf("%s", a.Text)
	}
	if len(s.RecentlyViewed) != 1 || s.RecentlyViewed[0].PropertyID != propertyID(1) || s.RecentlyViewed[0].Source != "search-map" {
		t.Errorf("viewed: %+v", s.RecentlyViewed)
	}
	if len(s.WishlistRefs) != 2 || s.WishlistRefs[0].PropertyID != propertyID(1) || len(s.SearchHistory) != 1 || len(s.Degraded) != 0 {
		t.Errorf("%s", a.Text)
	}
	for _, hidden := range []string{"ingerprint", "binding", "note of mine", "sha256:" + strings.Repeat("0", 8)} {
		if strings.Contains(a.Text, hidden) {
			t.Errorf("%q is shown", hidden)
		}
	}
	if n := h.RDB.LLen(t.Context(), h.Parts.Keys.SessionPart(cookie, "wishlist")).Val(); n != 2 {
		t.Errorf("the copy that was missing has %d entries", n)
	}
}

func TestASessionCostsOneRoundTripOfEachStore(t *testing.T) {
	h := newHouse(t)
	cookie := h.guest()
	h.session(cookie)
	uses := h.Parts.DB.Stat().AcquireCount()
	h.Trips.Take()
	h.session(cookie)
	if n := h.Trips.Take(); n != 1 { // its last visit is not a minute ago, and the copy is whole
		t.Errorf("%d round trips of Redis", n)
	}
	if n := h.Parts.DB.Stat().AcquireCount() - uses; n != 1 {
		t.Errorf("%d uses of Postgres", n)
	}
}

func TestWhatIsChosenStays(t *testing.T) {
	h := newHouse(t)
	cookie := h.guest("Accept-Language", "fr", "X-Client-Geo-Country", "AF")
	var s seen
	h.Must(200, "POST", "/session/locale", cookie, `{"locale":"ps-AF"}`).Into(t, &s)
	if s.LocalePreference != "ps-AF" {
		t.Errorf("%+v", s)
	}
	h.Must(200, "POST", "/session/currency", cookie, `{"currency":"IRR"}`).Into(t, &s)
	if s.CurrencyPreference != "IRR" {
		t.Errorf("%+v", s)
	}
	s = h.session(cookie, "Accept-Language", "ar", "X-Currency", "EUR", "X-Client-Geo-Country", "AE")
	if s.LocalePreference != "ps-AF" || s.CurrencyPreference != "IRR" {
		t.Errorf("overridden: %+v", s)
	}
	h.Must(200, "POST", "/session/locale", cookie, `{"locale":"ps-AF"}`) // no change, no event
	locales, currencies := h.Events("locale.changed"), h.Events("currency.changed")
	if len(locales) != 1 || len(currencies) != 1 {
		t.Fatalf("%d and %d events", len(locales), len(currencies))
	}
	l, c := locales[0].Payload.(event.LocaleChanged), currencies[0].Payload.(event.CurrencyChanged)
	if l.PreviousLocale != "fr" || l.NewLocale != "ps-AF" || l.Trigger != "user-explicit" || l.GuestSessionID != cookie {
		t.Errorf("%+v", l)
	}
	if c.PreviousCurrency != "AFN" || c.NewCurrency != "IRR" || c.Trigger != "user-explicit" {
		t.Errorf("%+v", c)
	}
}

func TestAChoiceMayBeTheFirstThingAGuestSays(t *testing.T) {
	h := newHouse(t)
	a := h.Must(200, "POST", "/session/locale", "", `{"locale":"fa-AF"}`, "Accept-Language", "fr")
	if s := h.session(a.Cookie(), "Accept-Language", "fr"); s.LocalePreference != "fa-AF" {
		t.Errorf("%+v", s)
	}
	if n := len(h.Events("locale.changed")); n != 0 {
		t.Errorf("%d changes of what never was", n)
	}
	if alias := h.Must(200, "POST", "/session/locale", a.Cookie(), `{"locale":"prs"}`); !strings.Contains(alias.Text, `"localePreference":"fa-AF"`) {
		t.Errorf("%s", alias.Text)
	}
}

func TestAHeaderOrACountryChangesWhatWasNotChosen(t *testing.T) {
	h := newHouse(t)
	cookie := h.guest("Accept-Language", "fr", "X-Client-Geo-Country", "AF")
	var all sync.WaitGroup
	for range 10 { // a page asks for many things at once
		all.Go(func() {
			h.Ask("GET", "/session", cookie, "", "Accept-Language", "ar", "X-Client-Geo-Country", "AE")
		})
	}
	all.Wait()
	h.session(cookie, "X-Currency", "EUR", "Accept-Language", "ar")
	locales, currencies := h.Events("locale.changed"), h.Events("currency.changed")
	if len(locales) != 1 || len(currencies) != 2 {
		t.Fatalf("%d and %d events", len(locales), len(currencies))
	}
	if l := locales[0].Payload.(event.LocaleChanged); l.Trigger != "accept-language" || l.PreviousLocale != "fr" || l.NewLocale != "ar" {
		t.Errorf("%+v", l)
	}
	if c := currencies[0].Payload.(event.CurrencyChanged); c.Trigger != "geo-ip" || c.PreviousCurrency != "AFN" || c.NewCurrency != "AED" {
		t.Errorf("%+v", c)
	}
	if c := currencies[1].Payload.(event.CurrencyChanged); c.Trigger != "user-explicit" || c.NewCurrency != "EUR" {
		t.Errorf("%+v", c)
	}
}

func TestStoresAway(t *testing.T) {
	h := newHouse(t)
	cookie := h.guest()
	h.live(cookie)
	h.session(cookie)
	for name, away := range map[string]func(){"broken": h.PG.Break, "hanging": h.PG.Hang} {
		away()
		if s := h.session(cookie); len(s.WishlistRefs) != 2 || len(s.Degraded) != 1 || s.Degraded[0].Part != "wishlist" {
			t.Errorf("%s: %+v", name, s)
		}
		before := h.RDB.LLen(t.Context(), h.Parts.Keys.Key("outbox", "spill")).Val()
		for _, l := range []string{"ar", "fr"} {
			h.Must(200, "POST", "/session/locale", cookie, `{"locale":"`+l+`"}`)
		}
		if n := h.RDB.LLen(t.Context(), h.Parts.Keys.Key("outbox", "spill")).Val(); n != before+2 {
			t.Errorf("%s: %d events wait, want 2 more than %d", name, n, before)
		}
		for _, c := range [][3]string{{"POST", "/session/consent", `{"consentTelemetry":false}`}, {"POST", "/session/clear", ""}, {"GET", "/session/export", ""}} {
			a := h.Ask(c[0], c[1], cookie, c[2])
			if a.StatusCode != 503 || a.Header.Get("Retry-After") == "" {
				t.Errorf("%s: %s: %d %s", name, c[1], a.StatusCode, a.Text)
			}
		}
		h.PG.Heal()
		h.Eventually("Postgres is back", func() bool { return h.Parts.DB.Ping(context.Background()) == nil })
	}
	h.Redis.Stop()
	s := h.session(cookie)
	if s.ID != cookie || len(s.WishlistRefs) != 2 || len(s.RecentlyViewed) != 0 || s.Degraded[0].Part != "session" {
		t.Errorf("without Redis: %+v", s)
	}
	for _, c := range [][3]string{{"POST", "/session/locale", `{"locale":"ar"}`}, {"POST", "/session/currency", `{"currency":"AED"}`}, {"POST", "/session/clear", ""}, {"GET", "/session/export", ""}} {
		if a := h.Ask(c[0], c[1], cookie, c[2]); a.StatusCode != 503 {
			t.Errorf("without Redis: %s: %d %s", c[1], a.StatusCode, a.Text)
		}
	}
	h.PG.Break()
	if s := h.session(cookie); s.ID != cookie || len(s.Degraded) != 2 {
		t.Errorf("without both: %+v", s)
	}
	if a := h.Must(200, "GET", "/session", "", ""); a.Cookie() == "" {
		t.Error("a first visit without both gets no cookie")
	}
}

func TestRecentlyViewedHasFiftyAtMost(t *testing.T) {
	h := newHouse(t)
	cookie := h.guest()
	h.visit(cookie, func(ctx context.Context, s *session.Session, pipe redis.Pipeliner) *session.HistoryEntry {
		for n := range 60 {
			h.Parts.Sessions.PushViewed(ctx, pipe, s, session.Viewed{PropertyID: propertyID(n), TenantID: tenantID(n), ViewedAt: fmt.Sprintf("2026-04-23T09:14:22.%03dZ", n), Source: "detail-link"})
		}
		return nil
	})
	if s := h.session(cookie); len(s.RecentlyViewed) != 50 || s.RecentlyViewed[0].PropertyID != propertyID(59) || s.RecentlyViewed[49].PropertyID != propertyID(10) {
		t.Errorf("%d: %+v", len(s.RecentlyViewed), s.RecentlyViewed)
	}
}
