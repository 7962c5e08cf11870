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
	"melmastoon.ghasi.io/bff-consumer/shared/keyspace"
	"melmastoon.ghasi.io/bff-consumer/shared/locale"
	"melmastoon.ghasi.io/bff-consumer/shared/lua"
	"melmastoon.ghasi.io/bff-consumer/shared/money"
	"melmastoon.ghasi.io/bff-consumer/shared/pgtest"
	"melmastoon.ghasi.io/bff-consumer/shared/postgres"
	"melmastoon.ghasi.io/bff-consumer/shared/redistest"
	"melmastoon.ghasi.io/bff-consumer/shared/stores"
)

const (
	firefox = "Mozilla/5.0 (X11; Linux x86_64; rv:132.0) Gecko/20100101 Firefox/132.0"
	newer   = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"
	iphone  = "Mozilla/5.0 (iPhone; CPU iPhone OS 18_1 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.1 Mobile/15E148 Safari/604.1"
)

// desk is a Room with its Redis and a clock that tests move.
type desk struct {
	*Room
	rdb  redis.UniversalClient
	db   *pgxpool.Pool
	away *stores.Proxy // takes Postgres away
	keys keyspace.Keys
	time time.Time
}

func newDesk(t *testing.T) *desk {
	t.Helper()
	d := &desk{rdb: redistest.New(t), keys: keyspace.Keys{Env: "test"}, time: testNow}
	var url string
	url, d.away = pgtest.Behind(t)
	var err error
	if d.db, err = postgres.Open(t.Context(), postgres.Config{URL: url}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.db.Close)
	t.Cleanup(d.away.Heal)
	d.Room = New(d.keys, ring(t, newKey), ring(t, oldKey), d.db, func() time.Time { return d.time })
	return d
}

// visit is one whole request of a guest: read, settle, save.
func (d *desk) visit(t *testing.T, cookie string, headers ...string) *Session {
	t.Helper()
	s := d.read(t, cookie, headers...)
	d.save(t, s)
	return s
}

// save ends a visit.
func (d *desk) save(t *testing.T, s *Session) Saved {
	t.Helper()
	if s.Degraded {
		return Saved{}
	}
	ctx := context.Background()
	pipe := d.rdb.Pipeline()
	cmd := d.Save(ctx, pipe, s, nil)
	lua.Exec(ctx, pipe)
	saved, err := d.Saved(s, cmd)
	if err != nil && !keyspace.IsAway(err) {
		t.Fatal(err)
	}
	return saved
}

// read is a visit of a guest that has begun and not ended.
func (d *desk) read(t *testing.T, cookie string, headers ...string) *Session {
	t.Helper()
	v := d.visitor(t, cookie, headers...)
	ctx := context.Background()
	pipe := d.rdb.Pipeline()
	read := d.Peek(ctx, pipe, v)
	pipe.Exec(ctx)
	return d.Recall(ctx, v, d.Settle(v, read))
}

func (d *desk) visitor(t *testing.T, cookie string, headers ...string) *Visit {
	t.Helper()
	r := httptest.NewRequest("POST", "/search", nil)
	r.Header.Set("User-Agent", firefox)
	if cookie != "" {
		r.Header.Set("Cookie", CookieName+"="+cookie)
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	v, err := d.Read(r)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// choose does what POST /session/locale and /session/currency do.
func (d *desk) choose(t *testing.T, cookie string, l locale.Tag, c money.Currency) Saved {
	t.Helper()
	s := d.read(t, cookie)
	s.ChooseLocale(l)
	s.ChooseCurrency(c)
	return d.save(t, s)
}

func TestAFirstVisitMakesASession(t *testing.T) {
	d := newDesk(t)
	s := d.visit(t, "", "Accept-Language", "ps-AF,ps;q=0.9", "X-Client-Geo-Country", "AF",
		"X-Campaign-Source", "google", "X-Campaign-Medium", "cpc", "X-Campaign-Name", "spring-2026")
	if !s.New || s.Degraded || !genuine(d.ring, s.ID, testNow) {
		t.Fatalf("session %+v", s)
	}
	if s.Locale != "ps-AF" || s.LocaleSource != Header || s.Currency != "AFN" || s.CurrencySource != GeoIP {
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

func TestAReturningGuestIsKnown(t *testing.T) {
	d := newDesk(t)
	first := d.visit(t, "", "Accept-Language", "fa-IR", "X-Currency", "IRR")
	d.time = d.time.Add(time.Hour)
	again := d.visit(t, first.ID)
	if again.New || again.ID != first.ID || !again.CreatedAt.Equal(first.CreatedAt) || !again.LastSeenAt.Equal(d.time) {
		t.Fatalf("came back as %+v", again)
	}
	if again.Locale != "fa-IR" || again.Currency != "IRR" {
		t.Errorf("without headers speaks %s and pays in %s", again.Locale, again.Currency)
	}
	if other := d.visit(t, first.ID, "Accept-Language", "ru"); other.Locale != "ru" {
		t.Errorf("another Accept-Language gives %s", other.Locale)
	}
}

func TestWhatTheGuestChoseIsNeverOverridden(t *testing.T) {
	d := newDesk(t)
	first := d.visit(t, "")
	d.choose(t, first.ID, "tg-TJ", "PKR")
	for _, headers := range [][]string{
		{}, {"Accept-Language", "fr"}, {"X-Currency", "EUR", "X-Client-Geo-Country", "AE"},
	} {
		if s := d.visit(t, first.ID, headers...); s.Locale != "tg-TJ" || s.Currency != "PKR" {
			t.Errorf("with %v: %s, %s", headers, s.Locale, s.Currency)
		}
	}
}

func TestTheGuessLearnsWhatTheGuestChose(t *testing.T) {
	d := newDesk(t)
	first := d.visit(t, "")
	d.choose(t, first.ID, "ar", "USD")
	v := &Visit{ID: first.ID}
	if l, _ := d.Guess(v); l != "en" {
		t.Errorf("before the first visit with it the guess is %s", l)
	}
	d.visit(t, first.ID)
	if l, _ := d.Guess(v); l != "ar" {
		t.Errorf("after it the guess is %s", l)
	}
	if l, _ := d.Guess(&Visit{ID: "gms_other"}); l != "en" {
		t.Errorf("another guest gets %s", l)
	}
}

func TestACookieBelongsToItsBrowser(t *testing.T) {
	d := newDesk(t)
	first := d.visit(t, "", "Accept-Language", "ar")
	if s := d.visit(t, first.ID, "User-Agent", newer, "X-Client-Screen", "800x600", "Accept-Language", "fr"); s.New || s.ID != first.ID {
		t.Error("an update, another screen or language cost the guest the session")
	}
	before := d.rdb.HGetAll(context.Background(), d.keys.Session(first.ID)).Val()
	s := d.visit(t, first.ID, "User-Agent", iphone)
	if !s.New || s.ID == first.ID {
		t.Fatalf("the cookie works from another browser: %+v", s)
	}
	after := d.rdb.HGetAll(context.Background(), d.keys.Session(first.ID)).Val()
	if len(before) == 0 || len(before) != len(after) || before["lastSeenAt"] != after["lastSeenAt"] {
		t.Error("the old session was touched")
	}
}

func TestCookiesThatAreNone(t *testing.T) {
	d := newDesk(t)
	minted := d.visit(t, "").ID
	for name, cookie := range map[string]string{
		"malformed": CookieName + "=hello",
		"foreign":   CookieName + "=" + id.New(id.Session, testNow),
		"two":       CookieName + "=" + minted + "; " + CookieName + "=" + minted,
		"empty":     CookieName + "=",
	} {
		r := httptest.NewRequest("POST", "/", nil)
		r.Header.Set("Cookie", cookie)
		if v, err := d.Read(r); err != nil || v.ID != "" {
			t.Errorf("%s: read as %q, %v", name, v.ID, err)
		}
	}
}

func TestALostSessionIsRebuiltEmpty(t *testing.T) {
	d := newDesk(t)
	first := d.visit(t, "", "X-Currency", "AED")
	d.rdb.FlushAll(context.Background())
	again := d.visit(t, first.ID)
	if again.New || again.ID != first.ID || again.Currency != "USD" {
		t.Fatalf("rebuilt as %+v", again)
	}
	if n := d.rdb.Exists(context.Background(), d.keys.Session(first.ID)).Val(); n != 1 {
		t.Error("the rebuilt session was not saved")
	}
}

func TestAClearedSessionIsNotRevivedByALateWrite(t *testing.T) {
	d := newDesk(t)
	first := d.visit(t, "")
	ctx := context.Background()
	v := &Visit{ID: first.ID, Client: Client{bindings: []string{first.binding}}}
	pipe := d.rdb.Pipeline()
	read := d.Peek(ctx, pipe, v)
	pipe.Exec(ctx)
	s := d.Settle(v, read)
	d.rdb.Del(ctx, d.keys.Session(first.ID)) // POST /session/clear, between the read and the write
	d.Save(ctx, pipe, s, &HistoryEntry{SearchSessionID: "srs_x"})
	if err := lua.Exec(ctx, pipe); err != nil {
		t.Fatal(err)
	}
	if keys := d.rdb.Keys(ctx, "*"+first.ID+"*").Val(); len(keys) != 0 {
		t.Errorf("left in Redis: %v", keys)
	}
}

func TestTheHistoryKeepsTheLast25(t *testing.T) {
	d := newDesk(t)
	s := d.visit(t, "")
	s.stored = true
	ctx := context.Background()
	for n := range maxHistory + 3 {
		pipe := d.rdb.Pipeline()
		d.Save(ctx, pipe, s, &HistoryEntry{QueryHash: strings.Repeat("x", n)})
		if err := lua.Exec(ctx, pipe); err != nil {
			t.Fatal(err)
		}
	}
	list := d.rdb.LRange(ctx, d.keys.SessionPart(s.ID, "history"), 0, -1).Val()
	if len(list) != maxHistory || !strings.Contains(list[0], strings.Repeat("x", maxHistory+2)) {
		t.Errorf("%d entries, newest %s", len(list), list[0])
	}
}

func TestWithoutRedisTheGuestIsServed(t *testing.T) {
	d := newDesk(t)
	first := d.visit(t, "")
	server := redistest.Server(t)
	d.rdb = server.Client()
	server.Stop()
	s := d.visit(t, first.ID)
	if !s.Degraded || s.ID != first.ID || s.New {
		t.Fatalf("served as %+v", s)
	}
	if !s.Emits() || d.visit(t, first.ID, "DNT", "1").Emits() {
		t.Error("without Redis the browser's word counts, and Postgres has the last one")
	}
	if fresh := d.visit(t, ""); !fresh.New || !fresh.Emits() {
		t.Errorf("a first visit without Redis is %+v", fresh)
	}
}

func TestNoTrackingIsHonouredFromTheStart(t *testing.T) {
	d := newDesk(t)
	for _, header := range []string{"DNT", "Sec-GPC"} {
		s := d.visit(t, "", header, "1")
		if s.Emits() {
			t.Errorf("%s: 1 and events are emitted", header)
		}
		if again := d.visit(t, s.ID); again.Emits() {
			t.Errorf("%s is forgotten by the next visit", header)
		}
	}
}

func TestCampaignsAreTokensOrNothing(t *testing.T) {
	d := newDesk(t)
	for _, value := range []string{"someone@example.com", "a sentence of words", strings.Repeat("x", 65), "<b>", "1.2.3.4 5"} {
		if s := d.visit(t, "", "X-Campaign-Name", value); s.Campaign != nil {
			t.Errorf("%q is kept as %+v", value, s.Campaign)
		}
	}
	s := d.visit(t, "", "X-Campaign-Source", "first")
	if s = d.visit(t, s.ID, "X-Campaign-Source", "second"); s.Campaign.Source != "second" {
		t.Errorf("the last campaign does not count: %+v", s.Campaign)
	}
	if s = d.visit(t, s.ID); s.Campaign == nil || s.Campaign.Source != "second" {
		t.Errorf("the campaign is forgotten: %+v", s.Campaign)
	}
}

func TestAWrongCurrencyIsAProblem(t *testing.T) {
	d := newDesk(t)
	for _, c := range []string{"usd", "XXX", "EURO", "€"} {
		r := httptest.NewRequest("POST", "/", nil)
		r.Header.Set("X-Currency", c)
		if _, err := d.Read(r); err == nil || !strings.Contains(err.Error(), "CURRENCY_NOT_SUPPORTED") {
			t.Errorf("%q: %v", c, err)
		}
	}
}

func TestNothingRawOfAClientIsStored(t *testing.T) {
	d := newDesk(t)
	s := d.visit(t, "", "User-Agent", firefox+" canary-agent", "Accept-Language", "fr-canary",
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

func TestTheCookieIsAsPromised(t *testing.T) {
	w := httptest.NewRecorder()
	SetCookie(w, "gms_01H8YN7Q2P7GZ4F8Y5CK4MV3DT")
	got := w.Header().Get("Set-Cookie")
	for _, part := range []string{"gms_id=gms_01H8YN7Q2P7GZ4F8Y5CK4MV3DT", "Path=/", "Max-Age=2592000", "HttpOnly", "Secure", "SameSite=Lax"} {
		if !strings.Contains(got, part) {
			t.Errorf("%s lacks %s", got, part)
		}
	}
}
