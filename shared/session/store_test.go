package session

import (
	"context"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/redis/go-redis/v9"

	"melmastoon.ghasi.io/bff-consumer/shared/id"
	"melmastoon.ghasi.io/bff-consumer/shared/locale"
	"melmastoon.ghasi.io/bff-consumer/shared/lua"
	"melmastoon.ghasi.io/bff-consumer/shared/money"
	"melmastoon.ghasi.io/bff-consumer/shared/postgres"
	"melmastoon.ghasi.io/bff-consumer/shared/redisclient"
	"melmastoon.ghasi.io/bff-consumer/shared/testkit/localstores"
	"melmastoon.ghasi.io/bff-consumer/shared/testkit/pgtest"
	"melmastoon.ghasi.io/bff-consumer/shared/testkit/redistest"
)

const (
	firefox        = "Mozilla/5.0 (X11; Linux x86_64; rv:132.0) Gecko/20100101 Firefox/132.0"
	firefoxUpdated = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"
	iphone         = "Mozilla/5.0 (iPhone; CPU iPhone OS 18_1 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.1 Mobile/15E148 Safari/604.1"
)

// harness is a Room with its Redis and a clock that tests move.
type harness struct {
	*Store
	rdb   redis.UniversalClient
	db    *pgxpool.Pool
	proxy *localstores.Proxy // takes Postgres away
	keys  redisclient.Keys
	time  time.Time
}

func newHarness(t *testing.T) *harness {
	t.Helper()
	d := &harness{rdb: redistest.New(t), keys: redisclient.Keys{Env: "test"}, time: testNow}
	var url string
	url, d.proxy = pgtest.ProxiedURL(t)
	var err error
	if d.db, err = postgres.Open(t.Context(), postgres.Config{URL: url}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.db.Close)
	t.Cleanup(d.proxy.Heal)
	d.Store = New(d.keys, parseRing(t, newKey), parseRing(t, oldKey), d.db, func() time.Time { return d.time })
	return d
}

// request is one whole request of a guest: read, settle, save.
func (d *harness) request(t *testing.T, cookie string, headers ...string) *Session {
	t.Helper()
	s := d.begin(t, cookie, headers...)
	d.save(t, s)
	return s
}

// save ends a visit.
func (d *harness) save(t *testing.T, s *Session) SaveResult {
	t.Helper()
	if s.Degraded {
		return SaveResult{}
	}
	ctx := context.Background()
	pipe := d.rdb.Pipeline()
	cmd := d.EnqueueSave(ctx, pipe, s, nil)
	lua.Exec(ctx, pipe)
	saved, err := d.ResolveSave(s, cmd)
	if err != nil && !redisclient.IsUnavailable(err) {
		t.Fatal(err)
	}
	return saved
}

// begin is a visit of a guest that has begun and not ended.
func (d *harness) begin(t *testing.T, cookie string, headers ...string) *Session {
	t.Helper()
	v := d.parseRequest(t, cookie, headers...)
	ctx := context.Background()
	pipe := d.rdb.Pipeline()
	read := d.Enqueue(ctx, pipe, v)
	pipe.Exec(ctx)
	return d.RestoreConsent(ctx, v, d.Resolve(v, read))
}

func (d *harness) parseRequest(t *testing.T, cookie string, headers ...string) *Request {
	t.Helper()
	r := httptest.NewRequest("POST", "/search", nil)
	r.Header.Set("User-Agent", firefox)
	if cookie != "" {
		r.Header.Set("Cookie", CookieName+"="+cookie)
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	v, err := d.ParseRequest(r)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// setPreferences does what POST /session/locale and /session/currency do.
func (d *harness) setPreferences(t *testing.T, cookie string, l locale.Tag, c money.Currency) SaveResult {
	t.Helper()
	s := d.begin(t, cookie)
	s.SetLocale(l)
	s.SetCurrency(c)
	return d.save(t, s)
}

func TestStoreResolve_FirstRequestCreatesSession(t *testing.T) {
	d := newHarness(t)
	s := d.request(t, "", "Accept-Language", "ps-AF,ps;q=0.9", "X-Client-Geo-Country", "AF",
		"X-Campaign-Source", "google", "X-Campaign-Medium", "cpc", "X-Campaign-Name", "spring-2026")
	if !s.New || s.Degraded || !verifyID(d.ring, s.ID, testNow) {
		t.Fatalf("session %+v", s)
	}
	if s.Locale != "ps-AF" || s.LocaleSource != SourceHeader || s.Currency != "AFN" || s.CurrencySource != SourceGeoIP {
		t.Errorf("speaks %s (%s), pays in %s (%s)", s.Locale, s.LocaleSource, s.Currency, s.CurrencySource)
	}
	if s.Campaign == nil || s.Campaign.Source != "google" || s.Campaign.Medium != "cpc" || s.Campaign.Campaign != "spring-2026" {
		t.Errorf("campaign %+v", s.Campaign)
	}
	if !s.Consent.Telemetry || s.Consent.Marketing {
		t.Errorf("consent %+v", s.Consent)
	}
	ttl := d.rdb.TTL(context.Background(), d.keys.Session(s.ID)).Val()
	if ttl <= TTL-time.Minute || ttl > TTL {
		t.Errorf("kept for %s", ttl)
	}
}

func TestStoreResolve_ReturningGuestKeepsSession(t *testing.T) {
	d := newHarness(t)
	first := d.request(t, "", "Accept-Language", "fa-IR", "X-Currency", "IRR")
	d.time = d.time.Add(time.Hour)
	again := d.request(t, first.ID)
	if again.New || again.ID != first.ID || !again.CreatedAt.Equal(first.CreatedAt) || !again.LastSeenAt.Equal(d.time) {
		t.Fatalf("came back as %+v", again)
	}
	if again.Locale != "fa-IR" || again.Currency != "IRR" {
		t.Errorf("without headers speaks %s and pays in %s", again.Locale, again.Currency)
	}
	if other := d.request(t, first.ID, "Accept-Language", "ru"); other.Locale != "ru" {
		t.Errorf("another Accept-Language gives %s", other.Locale)
	}
}

func TestStoreResolve_ExplicitPreferenceIsNotOverridden(t *testing.T) {
	d := newHarness(t)
	first := d.request(t, "")
	d.setPreferences(t, first.ID, "tg-TJ", "PKR")
	for _, headers := range [][]string{
		{}, {"Accept-Language", "fr"}, {"X-Currency", "EUR", "X-Client-Geo-Country", "AE"},
	} {
		if s := d.request(t, first.ID, headers...); s.Locale != "tg-TJ" || s.Currency != "PKR" {
			t.Errorf("with %v: %s, %s", headers, s.Locale, s.Currency)
		}
	}
}

func TestStorePredictPreferences_LearnsExplicitPreferences(t *testing.T) {
	d := newHarness(t)
	first := d.request(t, "")
	d.setPreferences(t, first.ID, "ar", "USD")
	v := &Request{ID: first.ID}
	if l, _ := d.PredictPreferences(v); l != "en" {
		t.Errorf("before the first visit with it the guess is %s", l)
	}
	d.request(t, first.ID)
	if l, _ := d.PredictPreferences(v); l != "ar" {
		t.Errorf("after it the guess is %s", l)
	}
	if l, _ := d.PredictPreferences(&Request{ID: "gms_other"}); l != "en" {
		t.Errorf("another guest gets %s", l)
	}
}

func TestStoreResolve_CookieIsBoundToBrowserFamily(t *testing.T) {
	d := newHarness(t)
	first := d.request(t, "", "Accept-Language", "ar")
	if s := d.request(t, first.ID, "User-Agent", firefoxUpdated, "X-Client-Screen", "800x600", "Accept-Language", "fr"); s.New || s.ID != first.ID {
		t.Error("an update, another screen or language cost the guest the session")
	}
	before := d.rdb.HGetAll(context.Background(), d.keys.Session(first.ID)).Val()
	s := d.request(t, first.ID, "User-Agent", iphone)
	if !s.New || s.ID == first.ID {
		t.Fatalf("the cookie works from another browser: %+v", s)
	}
	after := d.rdb.HGetAll(context.Background(), d.keys.Session(first.ID)).Val()
	if len(before) == 0 || len(before) != len(after) || before["lastSeenAt"] != after["lastSeenAt"] {
		t.Error("the old session was touched")
	}
}

func TestStoreVerifiedID_RejectsInvalidCookies(t *testing.T) {
	d := newHarness(t)
	minted := d.request(t, "").ID
	for name, cookie := range map[string]string{
		"malformed": CookieName + "=hello",
		"foreign":   CookieName + "=" + id.New(id.Session, testNow),
		"two":       CookieName + "=" + minted + "; " + CookieName + "=" + minted,
		"empty":     CookieName + "=",
	} {
		r := httptest.NewRequest("POST", "/", nil)
		r.Header.Set("Cookie", cookie)
		if v, err := d.ParseRequest(r); err != nil || v.ID != "" {
			t.Errorf("%s: read as %q, %v", name, v.ID, err)
		}
	}
}

func TestStoreResolve_RebuildsMissingSession(t *testing.T) {
	d := newHarness(t)
	first := d.request(t, "", "X-Currency", "AED")
	d.rdb.FlushAll(context.Background())
	again := d.request(t, first.ID)
	if again.New || again.ID != first.ID || again.Currency != "USD" {
		t.Fatalf("rebuilt as %+v", again)
	}
	if n := d.rdb.Exists(context.Background(), d.keys.Session(first.ID)).Val(); n != 1 {
		t.Error("the rebuilt session was not saved")
	}
}

func TestStoreEnqueueSave_LateSaveDoesNotRecreateClearedSession(t *testing.T) {
	d := newHarness(t)
	first := d.request(t, "")
	ctx := context.Background()
	v := &Request{ID: first.ID, Client: Client{bindings: []string{first.bindingHash}}}
	pipe := d.rdb.Pipeline()
	read := d.Enqueue(ctx, pipe, v)
	pipe.Exec(ctx)
	s := d.Resolve(v, read)
	d.rdb.Del(ctx, d.keys.Session(first.ID)) // POST /session/clear, between the read and the write
	d.EnqueueSave(ctx, pipe, s, &HistoryEntry{SearchSessionID: "srs_x"})
	if err := lua.Exec(ctx, pipe); err != nil {
		t.Fatal(err)
	}
	if keys := d.rdb.Keys(ctx, "*"+first.ID+"*").Val(); len(keys) != 0 {
		t.Errorf("left in Redis: %v", keys)
	}
}

func TestStoreEnqueueSave_KeepsLast25Searches(t *testing.T) {
	d := newHarness(t)
	s := d.request(t, "")
	s.exists = true
	ctx := context.Background()
	for n := range maxHistory + 3 {
		pipe := d.rdb.Pipeline()
		d.EnqueueSave(ctx, pipe, s, &HistoryEntry{QueryHash: strings.Repeat("x", n)})
		if err := lua.Exec(ctx, pipe); err != nil {
			t.Fatal(err)
		}
	}
	list := d.rdb.LRange(ctx, d.keys.SessionPart(s.ID, "history"), 0, -1).Val()
	if len(list) != maxHistory || !strings.Contains(list[0], strings.Repeat("x", maxHistory+2)) {
		t.Errorf("%d entries, newest %s", len(list), list[0])
	}
}

func TestStoreResolve_WithoutRedisIsDegraded(t *testing.T) {
	d := newHarness(t)
	first := d.request(t, "")
	server := redistest.NewServer(t)
	d.rdb = server.Client()
	server.Stop()
	s := d.request(t, first.ID)
	if !s.Degraded || s.ID != first.ID || s.New {
		t.Fatalf("served as %+v", s)
	}
	if !s.AllowsEvents() || d.request(t, first.ID, "DNT", "1").AllowsEvents() {
		t.Error("without Redis the browser's word counts, and Postgres has the last one")
	}
	if fresh := d.request(t, ""); !fresh.New || !fresh.AllowsEvents() {
		t.Errorf("a first visit without Redis is %+v", fresh)
	}
}

func TestStoreResolve_HonoursDNTAndGPC(t *testing.T) {
	d := newHarness(t)
	for _, header := range []string{"DNT", "Sec-GPC"} {
		s := d.request(t, "", header, "1")
		if s.AllowsEvents() {
			t.Errorf("%s: 1 and events are emitted", header)
		}
		if again := d.request(t, s.ID); again.AllowsEvents() {
			t.Errorf("%s is forgotten by the next visit", header)
		}
	}
}

func TestParseCampaign_AcceptsOnlyTokens(t *testing.T) {
	d := newHarness(t)
	for _, value := range []string{"someone@example.com", "a sentence of words", strings.Repeat("x", 65), "<b>", "1.2.3.4 5"} {
		if s := d.request(t, "", "X-Campaign-Name", value); s.Campaign != nil {
			t.Errorf("%q is kept as %+v", value, s.Campaign)
		}
	}
	s := d.request(t, "", "X-Campaign-Source", "first")
	if s = d.request(t, s.ID, "X-Campaign-Source", "second"); s.Campaign.Source != "second" {
		t.Errorf("the last campaign does not count: %+v", s.Campaign)
	}
	if s = d.request(t, s.ID); s.Campaign == nil || s.Campaign.Source != "second" {
		t.Errorf("the campaign is forgotten: %+v", s.Campaign)
	}
}

func TestStoreParseRequest_UnsupportedCurrencyIsAProblem(t *testing.T) {
	d := newHarness(t)
	for _, c := range []string{"usd", "XXX", "EURO", "€"} {
		r := httptest.NewRequest("POST", "/", nil)
		r.Header.Set("X-Currency", c)
		if _, err := d.ParseRequest(r); err == nil || !strings.Contains(err.Error(), "CURRENCY_NOT_SUPPORTED") {
			t.Errorf("%q: %v", c, err)
		}
	}
}

func TestStoreEnqueueSave_StoresNoRawClientData(t *testing.T) {
	d := newHarness(t)
	s := d.request(t, "", "User-Agent", firefox+" canary-agent", "Accept-Language", "fr-canary",
		"X-Client-Screen", "canary-screen", "X-Client-Timezone", "canary/zone", "X-Forwarded-For", "203.0.113.7")
	all := d.rdb.HGetAll(context.Background(), d.keys.Session(s.ID)).Val()
	for field, value := range all {
		for _, canary := range []string{"canary", "Firefox", "Linux", "203.0.113"} {
			if strings.Contains(value, canary) {
				t.Errorf("%s holds %q", field, value)
			}
		}
	}
}

func TestSetCookie_Attributes(t *testing.T) {
	w := httptest.NewRecorder()
	SetCookie(w, "gms_01H8YN7Q2P7GZ4F8Y5CK4MV3DT")
	got := w.Header().Get("Set-Cookie")
	for _, part := range []string{"gms_id=gms_01H8YN7Q2P7GZ4F8Y5CK4MV3DT", "Path=/", "Max-Age=2592000", "HttpOnly", "Secure", "SameSite=Lax"} {
		if !strings.Contains(got, part) {
			t.Errorf("%s lacks %s", got, part)
		}
	}
}
