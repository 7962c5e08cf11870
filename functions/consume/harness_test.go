package consume

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/gorillamux"
	"github.com/jackc/pgx/v5"
	"github.com/redis/go-redis/v9"

	"melmastoon.ghasi.io/bff-consumer/shared/caller/issuer"
	"melmastoon.ghasi.io/bff-consumer/shared/handoff"
	"melmastoon.ghasi.io/bff-consumer/shared/handoff/ledger"
	"melmastoon.ghasi.io/bff-consumer/shared/id"
	"melmastoon.ghasi.io/bff-consumer/shared/keyring"
	"melmastoon.ghasi.io/bff-consumer/shared/pgtest"
	"melmastoon.ghasi.io/bff-consumer/shared/redistest"
	"melmastoon.ghasi.io/bff-consumer/shared/stay"
	"melmastoon.ghasi.io/bff-consumer/shared/web"
)

const (
	audience  = "https://consume.example"
	account   = "bff-tenant@platform.iam.gserviceaccount.com"
	second    = "bff-tenant-canary@platform.iam.gserviceaccount.com"
	active    = "hmac-2026-11:bm92ZW1iZXIncyBrZXksIGluIHRlc3RzIG9ubHkuLi4="
	grace     = "hmac-2026-05:bWF5J3Mga2V5LCBpbiB0ZXN0cyBvbmx5Li4uLi4uLi4="
	gone      = "hmac-2026-04:YXByaWwncyBrZXksIGluIHRlc3RzIG9ubHkuLi4uLi4="
	suspected = "melmastoon.bff.consumer.bot_suspected.v1"
)

var (
	fingerprint = "sha256:" + strings.Repeat("ab", 32)
	address     = "sha256:" + strings.Repeat("cd", 32)
	theIssuer   = sync.OnceValues(func() (*issuer.Issuer, error) { return issuer.New("one") })
)

// house is the function with real stores, a clock that tests move and an issuer of their own.
type house struct {
	t       testing.TB
	consume *Consume
	issuer  *issuer.Issuer
	redis   *redistest.Redis
	rdb     redis.UniversalClient
	log     bytes.Buffer
	time    atomic.Int64
	front   http.Handler
}

func newHouse(t testing.TB) *house { return houseAt(t, pgtest.URL(t)) }

func houseAt(t testing.TB, database string) *house {
	t.Helper()
	h := &house{t: t, redis: redistest.Server(t)}
	h.time.Store(time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC).UnixMilli())
	var err error
	if h.issuer, err = theIssuer(); err != nil {
		t.Fatal(err)
	}
	keys := httptest.NewServer(h.issuer)
	t.Cleanup(keys.Close)
	peppers, err := keyring.Parse("test:QUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFB")
	if err != nil {
		t.Fatal(err)
	}
	h.consume, err = build(context.Background(), environment{
		Env: "test", RedisAddr: h.redis.Addr, DatabaseURL: database, Peppers: peppers, Keys: keysOf(t, active+","+grace),
		Issuer: issuer.Name, IssuerKeys: keys.URL, Audience: audience, Accounts: []string{account, second},
	}, h.now)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.consume.db.Close)
	h.rdb = h.redis.Client()
	h.mount()
	return h
}

func keysOf(t testing.TB, s string) handoff.Keys {
	t.Helper()
	k, err := handoff.ParseKeys(s)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func (h *house) now() time.Time { return time.UnixMilli(h.time.Load()).UTC() }

func (h *house) advance(d time.Duration) { h.time.Add(d.Milliseconds()) }

var number atomic.Int64 // makes the names of functions under test unique in the registry

func (h *house) mount() {
	name := fmt.Sprintf("Test%d", number.Add(1))
	web.Open(name, "POST /internal/handoff/{id}/consume", func(context.Context) (web.Handler, error) { return h.consume.Serve, nil })
	for _, f := range web.Functions() {
		if f.Name == name {
			if err := f.OpenTo(context.Background(), &lockedWriter{w: &h.log}); err != nil {
				h.t.Fatal(err)
			}
			h.front = f
		}
	}
}

type lockedWriter struct {
	mu sync.Mutex
	w  io.Writer
}

func (l *lockedWriter) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(p)
}

// minted is a handoff that is out, with its token.
type minted struct{ id, token, session, tenant string }

// mint does what POST /handoff does to the ledger.
func (h *house) mint(keys ...string) minted {
	h.t.Helper()
	if keys == nil {
		keys = []string{active}
	}
	now := h.now()
	e := ledger.Entry{
		Handoff: handoff.Handoff{
			ID: id.New(id.Handoff, now), GuestSessionID: id.New(id.Session, now), TenantID: id.New(id.Tenant, now), PropertyID: id.New(id.Property, now),
			Dates:  stay.Dates{CheckIn: stay.DateOf(now.AddDate(0, 0, 10)), CheckOut: stay.DateOf(now.AddDate(0, 0, 13))},
			Adults: 2, Children: 1, Rooms: 1, Currency: "AFN", Locale: "ps-AF", MintedAt: now,
		},
		Details:     ledger.Details{ChildrenAges: []int{7}, Campaign: &ledger.Campaign{Source: "google", CapturedAt: now}},
		Fingerprint: fingerprint, IPHash: address,
	}
	token, err := keysOf(h.t, keys[0]).Sign(&e.Handoff)
	if err != nil {
		h.t.Fatal(err)
	}
	var b pgx.Batch
	if err := ledger.Queue(&b, e); err != nil {
		h.t.Fatal(err)
	}
	if err := h.consume.db.SendBatch(context.Background(), &b).Close(); err != nil {
		h.t.Fatal(err)
	}
	return minted{e.ID, token, e.GuestSessionID, e.TenantID}
}

// answer is what a caller got.
type answer struct {
	*http.Response
	text string
	said
}

type said struct {
	consumed
	Code   string
	Errors []struct{ Field, Code string }
}

func (a *answer) is(status int, code string) bool {
	return a.StatusCode == status && (code == "" || strings.HasSuffix(a.Code, "."+code))
}

// use sends m's token as an instance of the tenant's BFF does; headers replace others.
func (h *house) use(m minted, by string, headers ...string) *answer {
	h.t.Helper()
	return h.post(m.id, fmt.Sprintf(`{"token":%q,"consumedBy":%q}`, m.token, by), headers...)
}

func (h *house) post(id, body string, headers ...string) *answer {
	h.t.Helper()
	r := httptest.NewRequest("POST", "/internal/handoff/"+id+"/consume", strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("User-Agent", "bff-tenant/1.0")
	r.Header.Set("Authorization", "Bearer "+h.issuer.Token(audience, account, h.now()))
	for i := 0; i < len(headers); i += 2 {
		if r.Header.Set(headers[i], headers[i+1]); headers[i+1] == "" {
			r.Header.Del(headers[i])
		}
	}
	w := httptest.NewRecorder()
	h.front.ServeHTTP(w, r)
	a := &answer{Response: w.Result(), text: w.Body.String()}
	h.conforms(r, a)
	if err := json.Unmarshal([]byte(a.text), &a.said); err != nil {
		h.t.Errorf("%v in %s", err, a.text)
	}
	if a.Header.Get("Set-Cookie") != "" || !strings.Contains(a.Header.Get("Cache-Control"), "no-store") {
		h.t.Errorf("%v", a.Header)
	}
	return a
}

var api = sync.OnceValues(func() (routers.Router, error) {
	loader := openapi3.NewLoader()
	loader.IsExternalRefsAllowed = true
	doc, err := loader.LoadFromFile("../../api/internal.openapi.yaml")
	if err != nil {
		return nil, err
	}
	return gorillamux.NewRouter(doc)
})

func (h *house) conforms(r *http.Request, a *answer) {
	h.t.Helper()
	router, err := api()
	if err != nil {
		h.t.Fatal(err)
	}
	route, params, err := router.FindRoute(r)
	if err != nil {
		h.t.Fatalf("%s is not in the API: %v", r.URL, err)
	}
	err = openapi3filter.ValidateResponse(context.Background(), &openapi3filter.ResponseValidationInput{
		RequestValidationInput: &openapi3filter.RequestValidationInput{Request: r, Route: route, PathParams: params},
		Status:                 a.StatusCode, Header: a.Header, Body: io.NopCloser(strings.NewReader(a.text)),
		Options: &openapi3filter.Options{IncludeResponseStatus: true},
	})
	if err != nil {
		h.t.Errorf("the answer breaks the API description: %v\n%s", err, a.text)
	}
}

// read reads one value.
func read[T any](h *house, sql string, args ...any) (v T) {
	h.t.Helper()
	if err := h.consume.db.QueryRow(context.Background(), sql, args...).Scan(&v); err != nil {
		h.t.Fatal(err)
	}
	return v
}

func (h *house) used(m minted) bool {
	return read[bool](h, `SELECT consumed FROM bff_consumer.handoff_replay_log WHERE id = $1`, m.id)
}

// reports is how many events and verdicts tell of a second use.
func (h *house) reports() (events, verdicts int) {
	return read[int](h, `SELECT count(*) FROM bff_consumer.outbox WHERE topic = $1`, suspected),
		read[int](h, `SELECT count(*) FROM bff_consumer.bot_score_log WHERE verdict = 'suspect'`)
}

func (h *house) exec(sql string, args ...any) {
	h.t.Helper()
	if _, err := h.consume.db.Exec(context.Background(), sql, args...); err != nil {
		h.t.Fatal(err)
	}
}

func (h *house) suspend(tenant string) {
	h.t.Helper()
	uuid, err := id.UUID(id.Tenant, tenant)
	if err != nil {
		h.t.Fatal(err)
	}
	h.exec(`
		INSERT INTO bff_consumer.tenant_suspended_cache (tenant_id, suspended_at, reason)
		VALUES ($1, now(), 'billing-overdue')`, uuid)
}
