package session

import (
	"net/http/httptest"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/redis/go-redis/v9"

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

// harness is a Store with a Redis server of its own and a clock that the test moves.
type harness struct {
	*Store
	server *redistest.Redis
	rdb    redis.UniversalClient
	db     *pgxpool.Pool
	keys   redisclient.Keys
	time   time.Time
}

func newHarness(t *testing.T) *harness {
	t.Helper()
	return newHarnessOn(t, pgtest.New(t))
}

// newHarnessWithProxy returns a harness whose Postgres the test can break.
func newHarnessWithProxy(t *testing.T) (*harness, *localstores.Proxy) {
	t.Helper()
	url, proxy := pgtest.ProxiedURL(t)
	db, err := postgres.Open(t.Context(), postgres.Config{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	t.Cleanup(proxy.Heal) // before Close, which waits for a hanging server
	return newHarnessOn(t, db), proxy
}

func newHarnessOn(t *testing.T, db *pgxpool.Pool) *harness {
	t.Helper()
	h := &harness{server: redistest.NewServer(t), db: db, keys: redisclient.Keys{Env: "test"}, time: testNow}
	h.rdb = h.server.Client()
	h.Store = New(h.keys, parseRing(t, newKey), parseRing(t, oldKey), db, func() time.Time { return h.time })
	return h
}

// request runs a whole request of a guest: Enqueue, Resolve, RestoreConsent, EnqueueSave.
func (h *harness) request(t *testing.T, cookie string, headers ...string) *Session {
	t.Helper()
	s := h.begin(t, cookie, headers...)
	h.save(t, s)
	return s
}

// begin runs a request up to RestoreConsent.
func (h *harness) begin(t *testing.T, cookie string, headers ...string) *Session {
	t.Helper()
	request := h.parseRequest(t, cookie, headers...)
	pipe := h.rdb.Pipeline()
	read := h.Enqueue(t.Context(), pipe, request)
	pipe.Exec(t.Context()) // Resolve handles the error
	return h.RestoreConsent(t.Context(), request, h.Resolve(request, read))
}

func (h *harness) parseRequest(t *testing.T, cookie string, headers ...string) *Request {
	t.Helper()
	r := httptest.NewRequest("POST", "/search", nil)
	r.Header.Set("User-Agent", firefox)
	if cookie != "" {
		r.Header.Set("Cookie", CookieName+"="+cookie)
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	request, err := h.ParseRequest(r)
	if err != nil {
		t.Fatal(err)
	}
	return request
}

// save ends a request that begin began.
func (h *harness) save(t *testing.T, s *Session) SaveResult {
	t.Helper()
	if s.Degraded {
		return SaveResult{}
	}
	pipe := h.rdb.Pipeline()
	cmd := h.EnqueueSave(t.Context(), pipe, s, nil)
	lua.Exec(t.Context(), pipe) // ResolveSave returns the error
	saved, err := h.ResolveSave(s, cmd)
	if err != nil && !redisclient.IsUnavailable(err) {
		t.Fatal(err)
	}
	return saved
}

// setPreferences does the work of POST /session/locale and POST /session/currency.
func (h *harness) setPreferences(t *testing.T, cookie string, l locale.Tag, c money.Currency) SaveResult {
	t.Helper()
	s := h.begin(t, cookie)
	s.SetLocale(l)
	s.SetCurrency(c)
	return h.save(t, s)
}

// loseSessions makes Redis lose all data.
func (h *harness) loseSessions(t *testing.T) {
	t.Helper()
	if err := h.rdb.FlushAll(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
}

// exec runs the commands that enqueue queues.
func (h *harness) exec(t *testing.T, enqueue func(redis.Pipeliner)) {
	t.Helper()
	pipe := h.rdb.Pipeline()
	enqueue(pipe)
	if err := lua.Exec(t.Context(), pipe); err != nil {
		t.Fatal(err)
	}
}

// requireNew fails the test unless s is a new session with another id than before.
func requireNew(t *testing.T, s *Session, before string) {
	t.Helper()
	if !s.New || s.ID == before {
		t.Errorf("got session %s (new %t), want a new session other than %s", s.ID, s.New, before)
	}
}

// requireSame fails the test unless s is an existing session with this id.
func requireSame(t *testing.T, s *Session, id string) {
	t.Helper()
	if s.New || s.ID != id {
		t.Errorf("got session %s (new %t), want %s", s.ID, s.New, id)
	}
}

// preferencesOf returns what Resolve found of a session's preferences.
func preferencesOf(s *Session) [4]string {
	return [4]string{string(s.Locale), string(s.LocaleSource), string(s.Currency), string(s.CurrencySource)}
}
