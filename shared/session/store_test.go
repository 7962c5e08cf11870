package session

import (
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"melmastoon.ghasi.io/bff-consumer/shared/id"
)

func TestStoreResolve_FirstRequestCreatesSession(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	s := h.request(t, "", "Accept-Language", "ps-AF,ps;q=0.9", "X-Client-Geo-Country", "AF",
		"X-Campaign-Source", "google", "X-Campaign-Medium", "cpc", "X-Campaign-Name", "spring-2026")
	if !s.New || s.Degraded || !verifyID(h.ring, s.ID, testNow) {
		t.Fatalf("got session %s (new %t, degraded %t), want a new session with a genuine id", s.ID, s.New, s.Degraded)
	}
	if diff := cmp.Diff([4]string{"ps-AF", "accept-language", "AFN", "geo-ip"}, preferencesOf(s)); diff != "" {
		t.Errorf("preferences (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(&Campaign{"google", "cpc", "spring-2026", testNow}, s.Campaign); diff != "" {
		t.Errorf("campaign (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(Consent{Telemetry: true}, s.Consent); diff != "" {
		t.Errorf("consent (-want +got):\n%s", diff)
	}
	if ttl := h.rdb.TTL(t.Context(), h.keys.Session(s.ID)).Val(); ttl <= TTL-time.Minute || ttl > TTL {
		t.Errorf("the hash expires in %s, want %s", ttl, TTL)
	}
}

func TestStoreResolve_ReturningGuestKeepsSession(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	first := h.request(t, "", "Accept-Language", "fa-IR", "X-Currency", "IRR")
	h.time = h.time.Add(time.Hour)
	again := h.request(t, first.ID)
	requireSame(t, again, first.ID)
	if !again.CreatedAt.Equal(first.CreatedAt) || !again.LastSeenAt.Equal(h.time) {
		t.Errorf("created %s, seen %s; want %s and %s", again.CreatedAt, again.LastSeenAt, first.CreatedAt, h.time)
	}
	if diff := cmp.Diff([4]string{"fa-IR", "accept-language", "IRR", "accept-language"}, preferencesOf(again)); diff != "" {
		t.Errorf("preferences without headers (-want +got):\n%s", diff)
	}
	if other := h.request(t, first.ID, "Accept-Language", "ru"); other.Locale != "ru" {
		t.Errorf("locale %s after another Accept-Language, want ru", other.Locale)
	}
}

func TestStoreResolve_ExplicitPreferenceIsNotOverridden(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	first := h.request(t, "")
	h.setPreferences(t, first.ID, "tg-TJ", "PKR")
	for name, headers := range map[string][]string{
		"no header": nil, "language": {"Accept-Language", "fr"}, "currency and country": {"X-Currency", "EUR", "X-Client-Geo-Country", "AE"},
	} {
		t.Run(name, func(t *testing.T) {
			want := [4]string{"tg-TJ", "user-explicit", "PKR", "user-explicit"}
			if diff := cmp.Diff(want, preferencesOf(h.request(t, first.ID, headers...))); diff != "" {
				t.Errorf("preferences (-want +got):\n%s", diff)
			}
		})
	}
}

func TestStorePredictPreferences_LearnsExplicitPreferences(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	first := h.request(t, "")
	h.setPreferences(t, first.ID, "ar", "USD")
	request := &Request{ID: first.ID}
	if l, _ := h.PredictPreferences(request); l != "en" {
		t.Errorf("predicted %s before a request read the preference, want en", l)
	}
	h.request(t, first.ID)
	if l, _ := h.PredictPreferences(request); l != "ar" {
		t.Errorf("predicted %s after a request read the preference, want ar", l)
	}
	if l, _ := h.PredictPreferences(&Request{ID: "gms_other"}); l != "en" {
		t.Errorf("predicted %s for another guest, want en", l)
	}
}

func TestStoreResolve_CookieIsBoundToBrowserFamily(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	first := h.request(t, "", "Accept-Language", "ar")
	requireSame(t, h.request(t, first.ID, "User-Agent", firefoxUpdated, "X-Client-Screen", "800x600", "Accept-Language", "fr"), first.ID)
	before := h.rdb.HGetAll(t.Context(), h.keys.Session(first.ID)).Val()
	requireNew(t, h.request(t, first.ID, "User-Agent", iphone), first.ID)
	if diff := cmp.Diff(before, h.rdb.HGetAll(t.Context(), h.keys.Session(first.ID)).Val()); diff != "" || len(before) == 0 {
		t.Errorf("another browser changed the session of %d fields (-before +after):\n%s", len(before), diff)
	}
}

func TestStoreVerifiedID_RejectsInvalidCookies(t *testing.T) {
	t.Parallel()
	keys := parseRing(t, newKey)
	r := New(emptyKeys, keys, keys, nil, func() time.Time { return testNow })
	minted := mintID(keys, testNow)
	for name, c := range map[string]struct{ cookie, want string }{
		"genuine":   {CookieName + "=" + minted, minted},
		"malformed": {CookieName + "=hello", ""},
		"foreign":   {CookieName + "=" + id.New(id.Session, testNow), ""},
		"two":       {CookieName + "=" + minted + "; " + CookieName + "=" + minted, ""},
		"empty":     {CookieName + "=", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			req := httptest.NewRequest("POST", "/", nil)
			req.Header.Set("Cookie", c.cookie)
			if request, err := r.ParseRequest(req); err != nil || request.ID != c.want {
				t.Errorf("got id %q, error %v, want %q", request.ID, err, c.want)
			}
		})
	}
}

func TestStoreResolve_RebuildsMissingSession(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	first := h.request(t, "", "X-Currency", "AED")
	h.loseSessions(t)
	again := h.request(t, first.ID)
	requireSame(t, again, first.ID)
	if again.Currency != "USD" {
		t.Errorf("currency %s of a lost session, want the default USD", again.Currency)
	}
	if n := h.rdb.Exists(t.Context(), h.keys.Session(first.ID)).Val(); n != 1 {
		t.Error("the rebuilt session was not saved")
	}
}

func TestStoreResolve_WithoutRedisIsDegraded(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	first := h.request(t, "")
	h.server.Stop()
	s := h.request(t, first.ID)
	requireSame(t, s, first.ID)
	if !s.Degraded || s.ConsentKnown() {
		t.Errorf("degraded %t, consent known %t; want true and false", s.Degraded, s.ConsentKnown())
	}
	if !s.AllowsEvents() || h.request(t, first.ID, "DNT", "1").AllowsEvents() {
		t.Error("without Redis, the browser's headers do not decide about events")
	}
	if fresh := h.request(t, ""); !fresh.New || !fresh.AllowsEvents() {
		t.Errorf("first request without Redis: new %t, allows events %t; want true and true", fresh.New, fresh.AllowsEvents())
	}
}

func TestStoreResolve_HonoursDNTAndGPC(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	for _, header := range []string{"DNT", "Sec-GPC"} {
		t.Run(header, func(t *testing.T) {
			s := h.request(t, "", header, "1")
			if s.AllowsEvents() {
				t.Error("the session allows events")
			}
			if h.request(t, s.ID).AllowsEvents() {
				t.Error("the next request without the header allows events")
			}
		})
	}
}

func TestParseCampaign_AcceptsOnlyTokens(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	for name, value := range map[string]string{
		"e-mail": "someone@example.com", "sentence": "a sentence of words", "too long": strings.Repeat("x", 65), "markup": "<b>", "address": "1.2.3.4 5",
	} {
		t.Run(name, func(t *testing.T) {
			if got := h.parseRequest(t, "", "X-Campaign-Name", value).campaign; got != nil {
				t.Errorf("got campaign %+v for %q, want none", got, value)
			}
		})
	}
	s := h.request(t, "", "X-Campaign-Source", "first")
	if s = h.request(t, s.ID, "X-Campaign-Source", "second"); s.Campaign == nil || s.Campaign.Source != "second" {
		t.Errorf("got campaign %+v, want the source second", s.Campaign)
	}
	if s = h.request(t, s.ID); s.Campaign == nil || s.Campaign.Source != "second" {
		t.Errorf("got campaign %+v without headers, want the source second", s.Campaign)
	}
}

func TestStoreParseRequest_UnsupportedCurrencyIsAProblem(t *testing.T) {
	t.Parallel()
	keys := parseRing(t, newKey)
	r := New(emptyKeys, keys, keys, nil, time.Now)
	for _, c := range []string{"usd", "XXX", "EURO", "€"} {
		t.Run(c, func(t *testing.T) {
			t.Parallel()
			req := httptest.NewRequest("POST", "/", nil)
			req.Header.Set("X-Currency", c)
			if _, err := r.ParseRequest(req); err == nil || !strings.Contains(err.Error(), "CURRENCY_NOT_SUPPORTED") {
				t.Errorf("got error %v, want CURRENCY_NOT_SUPPORTED", err)
			}
		})
	}
}

func TestSetCookie_Attributes(t *testing.T) {
	t.Parallel()
	w := httptest.NewRecorder()
	SetCookie(w, "gms_01H8YN7Q2P7GZ4F8Y5CK4MV3DT")
	const want = "gms_id=gms_01H8YN7Q2P7GZ4F8Y5CK4MV3DT; Path=/; Max-Age=2592000; HttpOnly; Secure; SameSite=Lax"
	if got := w.Header().Get("Set-Cookie"); got != want {
		t.Errorf("Set-Cookie is %q, want %q", got, want)
	}
}
