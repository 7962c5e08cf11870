package handoff

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/gorillamux"

	"melmastoon.ghasi.io/bff-consumer/shared/handoff"
	"melmastoon.ghasi.io/bff-consumer/shared/id"
	"melmastoon.ghasi.io/bff-consumer/shared/keyring"
	"melmastoon.ghasi.io/bff-consumer/shared/pgtest"
	"melmastoon.ghasi.io/bff-consumer/shared/redistest"
	"melmastoon.ghasi.io/bff-consumer/shared/setup"
	"melmastoon.ghasi.io/bff-consumer/shared/tenants"
	"melmastoon.ghasi.io/bff-consumer/shared/web"
)

const (
	firefox  = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"
	handoffs = "hmac-2026-11:bm92ZW1iZXIncyBrZXksIGluIHRlc3RzIG9ubHkuLi4="
	retired  = "hmac-2026-05:bWF5J3Mga2V5LCBpbiB0ZXN0cyBvbmx5Li4uLi4uLi4="
)

// house is the function with real stores, a clock that tests move and upstreams that tests command.
type house struct {
	t     testing.TB
	parts *setup.Parts
	up    *upstreams
	redis *redistest.Redis
	trips *redistest.Counter
	log   bytes.Buffer
	time  atomic.Int64
	front http.Handler
	keys  handoff.Keys
}

func newHouse(t testing.TB) *house { return houseAt(t, pgtest.URL(t)) }

func houseAt(t testing.TB, database string) *house {
	t.Helper()
	server := redistest.Server(t)
	h := &house{t: t, up: newUpstreams(t), redis: server}
	h.time.Store(time.Now().UnixMilli())
	h.open(environmentOf(t, database, server.Addr, h.up.URL))
	return h
}

func environmentOf(t testing.TB, database, redis, upstream string) setup.Environment {
	flags := t.TempDir() + "/flags.json"
	if err := os.WriteFile(flags, []byte(`{"limitsEnabled":false,"botMode":"off"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	return setup.Environment{
		Env: "test", Region: "asia-south1", RedisAddr: redis, DatabaseURL: database, DBMaxConns: 4,
		SearchURL: upstream, PricingURL: upstream, PropertyURL: upstream, ThemeURL: upstream,
		UpstreamAuth: "none", FlagsFile: flags, SessionKeys: ring(t), Peppers: ring(t),
	}
}

func ring(t testing.TB) keyring.Ring {
	t.Helper()
	r, err := keyring.Parse("test:QUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFB")
	if err != nil {
		t.Fatal(err)
	}
	return r
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

func (h *house) open(e setup.Environment) {
	h.t.Helper()
	var err error
	if h.parts, err = setup.Build(context.Background(), e, h.now); err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(h.parts.DB.Close)
	h.trips = redistest.Count(h.parts.Redis)
	h.keys = keysOf(h.t, handoffs+","+retired)
	h.front = serve(h.t, New(h.parts, h.keys, handoff.Link{}).Serve, &lockedWriter{w: &h.log})
}

var number atomic.Int64 // makes the names of functions under test unique in the registry

// serve puts a handler behind the pipeline.
func serve(t testing.TB, handler web.Handler, log io.Writer) http.Handler {
	t.Helper()
	name := fmt.Sprintf("Test%d", number.Add(1))
	web.Open(name, "POST "+web.Base+"/handoff", func(context.Context) (web.Handler, error) { return handler, nil })
	for _, f := range web.Functions() {
		if f.Name == name {
			if err := f.OpenTo(context.Background(), log); err != nil {
				t.Fatal(err)
			}
			return f
		}
	}
	return nil
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

// answer is what a client got.
type answer struct {
	*http.Response
	text string
	said
}

type said struct {
	minted
	Code      string
	Retriable bool
	Errors    []struct{ Field, Code string }
}

func (a *answer) cookie() string {
	for _, c := range a.Cookies() {
		if c.Name == "gms_id" {
			return c.Value
		}
	}
	return ""
}

func (a *answer) replayed() bool { return a.Header.Get("Idempotency-Replayed") == "true" }

func (a *answer) field() string {
	if len(a.Errors) == 0 {
		return ""
	}
	return a.Errors[0].Field + " " + a.Errors[0].Code
}

// token is the one in the URL.
func (a *answer) token(t testing.TB) string {
	t.Helper()
	u, err := url.Parse(a.URL)
	if err != nil || a.URL == "" {
		t.Fatalf("no URL in %d %s", a.StatusCode, a.text)
	}
	return u.Query().Get("h")
}

// post sends a request through the pipeline and holds the answer against the API description.
func (h *house) post(body string, headers ...string) *answer {
	h.t.Helper()
	r := httptest.NewRequest("POST", web.Base+"/handoff", strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("User-Agent", firefox)
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
	return a
}

// mint is a post that must be answered with 201.
func (h *house) mint(body string, headers ...string) *answer {
	h.t.Helper()
	a := h.post(body, headers...)
	if a.StatusCode != http.StatusCreated {
		h.t.Fatalf("%d %s", a.StatusCode, a.text)
	}
	return a
}

// guest is the headers of a guest who has a session, and of a key.
func (h *house) guest(key string) []string {
	cookie := h.mint(h.body(), "Idempotency-Key", "of-the-first-visit").cookie()
	return []string{"Cookie", "gms_id=" + cookie, "Idempotency-Key", key}
}

var api = sync.OnceValues(func() (routers.Router, error) {
	doc, err := openapi3.NewLoader().LoadFromFile("../../api/consumer.openapi.yaml")
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

// body is a valid request; with replaces parts of it.
func (h *house) body(with ...string) string {
	in := h.now().AddDate(0, 0, 10)
	body := fmt.Sprintf(`{"tenantId":%q,"propertyId":%q,"dates":{"checkIn":%q,"checkOut":%q},"occupancy":{"adults":2,"children":1,"rooms":1,"childrenAges":[7]}}`,
		tenantID(1), propertyID(1), in.Format(time.DateOnly), in.AddDate(0, 0, 3).Format(time.DateOnly))
	for i := 0; i < len(with); i += 2 {
		if !strings.Contains(body, with[i]) {
			h.t.Fatalf("the request has no %s", with[i])
		}
		body = strings.Replace(body, with[i], with[i+1], 1)
	}
	return body
}

// more is a valid request with further members.
func (h *house) more(members string) string {
	return strings.TrimSuffix(h.body(), "}") + "," + members + "}"
}

// count is how many rows a table has.
func (h *house) count(table string) (n int) {
	h.t.Helper()
	if err := h.parts.DB.QueryRow(context.Background(), "SELECT count(*) FROM bff_consumer."+table).Scan(&n); err != nil {
		h.t.Fatal(err)
	}
	return n
}

// told reads the outbox by topic.
func (h *house) told(topic string) (messages []json.RawMessage) {
	h.t.Helper()
	rows, err := h.parts.DB.Query(context.Background(), `SELECT payload FROM bff_consumer.outbox WHERE topic = $1 ORDER BY id`, topic)
	if err != nil {
		h.t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var m json.RawMessage
		if err := rows.Scan(&m); err != nil {
			h.t.Fatal(err)
		}
		messages = append(messages, m)
	}
	if err := rows.Err(); err != nil {
		h.t.Fatal(err)
	}
	return messages
}

func (h *house) exec(sql string, args ...any) {
	h.t.Helper()
	if _, err := h.parts.DB.Exec(context.Background(), sql, args...); err != nil {
		h.t.Fatal(err)
	}
}

func (h *house) wipeRedis() {
	h.t.Helper()
	if err := h.parts.Redis.Do(context.Background(), "FLUSHALL").Err(); err != nil {
		h.t.Fatal(err)
	}
}

// record writes what the consumer of tenant.suspended.v1 writes first; the copy in Redis may come later.
func (h *house) record(tenant string) {
	h.t.Helper()
	uuid, err := id.UUID(id.Tenant, tenant)
	if err != nil {
		h.t.Fatal(err)
	}
	h.exec(`
		INSERT INTO bff_consumer.tenant_suspended_cache (tenant_id, suspended_at, reason)
		VALUES ($1, now(), 'billing-overdue')`, uuid)
}

func (h *house) suspend(tenant string) {
	h.t.Helper()
	h.record(tenant)
	if err := tenants.New(h.parts.Redis, h.parts.DB, h.parts.Keys, h.now).Suspend(context.Background(), tenant); err != nil {
		h.t.Fatal(err)
	}
}

// upstreams stand in for property-service and theme-config.
type upstreams struct {
	*httptest.Server
	properties, brands atomic.Int64 // calls

	mu      sync.Mutex
	failing map[string]int  // status by service
	unknown map[string]bool // ids
}

func newUpstreams(t testing.TB) *upstreams {
	u := &upstreams{failing: map[string]int{}, unknown: map[string]bool{}}
	u.Server = httptest.NewServer(http.HandlerFunc(u.answer))
	t.Cleanup(u.Close)
	return u
}

func propertyID(n int) string { return fmt.Sprintf("ppt_%026d", n) }
func tenantID(n int) string   { return fmt.Sprintf("tnt_%026d", n) }

func (u *upstreams) command(change func(*upstreams)) {
	u.mu.Lock()
	defer u.mu.Unlock()
	change(u)
}

// answer knows property n of tenant n.
func (u *upstreams) answer(w http.ResponseWriter, r *http.Request) {
	part := strings.Split(r.URL.Path, "/")
	service, of := "property", part[len(part)-1]
	if part[1] == "theme-config" {
		service, of = "theme", part[4]
		u.brands.Add(1)
	} else {
		u.properties.Add(1)
	}
	u.mu.Lock()
	status, unknown := u.failing[service], u.unknown[of]
	u.mu.Unlock()
	switch {
	case status != 0:
		w.WriteHeader(status)
	case unknown:
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(http.StatusNotFound)
	case service == "theme":
		fmt.Fprintf(w, `{"tenantId":%q,"tenantSlug":"kabul-grand","primaryColor":"#aabbcc","logoUrl":"https://l.example/x.svg","brandName":{"default":"Kabul Grand"}}`, of)
	default:
		fmt.Fprintf(w, `{"propertyId":%q,"tenantId":%q,"tenantSlug":"old-name","name":{"default":"Kabul Grand"},"city":"Kabul","country":"AF","geo":{"lat":34.5,"lng":69.2},"rooms":[],"amenities":[],"photos":[],"policies":{"cancellation":"","checkIn":"","checkOut":""}}`,
			of, "tnt_"+of[len("ppt_"):])
	}
}
