package search

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/gorillamux"

	"melmastoon.ghasi.io/bff-consumer/shared/flags"
	"melmastoon.ghasi.io/bff-consumer/shared/id"
	"melmastoon.ghasi.io/bff-consumer/shared/keyring"
	"melmastoon.ghasi.io/bff-consumer/shared/pgtest"
	"melmastoon.ghasi.io/bff-consumer/shared/redistest"
	"melmastoon.ghasi.io/bff-consumer/shared/setup"
	"melmastoon.ghasi.io/bff-consumer/shared/tenants"
	"melmastoon.ghasi.io/bff-consumer/shared/web"
)

const firefox = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"

// house is the three functions of this module with real stores, a clock that tests move and upstreams
// that tests command.
type house struct {
	t     testing.TB
	parts *setup.Parts
	up    *upstreams
	redis *redistest.Redis
	trips *redistest.Counter
	log   bytes.Buffer
	flags string // path of the flags file
	time  atomic.Int64
	mux   *http.ServeMux
}

var number atomic.Int64 // makes the names of functions under test unique in the registry

func newHouse(t testing.TB) *house {
	t.Helper()
	return newHouseOn(t, pgtest.URL(t))
}

// newHouseOn is newHouse with a database that a test can take away.
func newHouseOn(t testing.TB, database string) *house {
	t.Helper()
	h := &house{t: t, up: newUpstreams(t), redis: redistest.Server(t), flags: t.TempDir() + "/flags.json", mux: http.NewServeMux()}
	h.time.Store(time.Now().UnixMilli())
	e := setup.Environment{
		Env: "test", Region: "asia-south1", RedisAddr: h.redis.Addr, DatabaseURL: database, ValidateEvents: true, DBMaxConns: 4,
		SearchURL: h.up.search.URL, PricingURL: h.up.pricing.URL, PropertyURL: h.up.search.URL, ThemeURL: h.up.theme.URL,
		UpstreamAuth: "none", FlagsFile: h.flags, SessionKeys: ring(t), Peppers: ring(t),
	}
	h.open(e)
	return h
}

func ring(t testing.TB) keyring.Ring {
	t.Helper()
	r, err := keyring.Parse("test:QUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFB")
	if err != nil {
		t.Fatal(err)
	}
	return r
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
	p := h.parts
	finder := NewFinder(p.Keys, p.Cache, p.Upstreams, p.Compose, p.Flags, p.Region, p.Now)
	guests := NewGuests(p.Door, p.Sessions, p.Flags, p.Now)
	h.mount("POST "+web.Base+"/search", NewList(finder, guests).Serve)
	h.mount("POST "+web.Base+"/search/map", NewMap(finder, guests).Serve)
	h.mount("GET "+web.Base+"/facets", NewFacets(p.Keys, p.Cache, p.Upstreams).Serve)
}

func (h *house) mount(pattern string, handler web.Handler) {
	name := fmt.Sprintf("Test%d", number.Add(1))
	web.Open(name, pattern, func(context.Context) (web.Handler, error) { return handler, nil })
	for _, f := range web.Functions() {
		if f.Name == name {
			if err := f.OpenTo(context.Background(), &lockedWriter{w: &h.log}); err != nil {
				h.t.Fatal(err)
			}
			h.mux.Handle(pattern[strings.Index(pattern, "/"):], f)
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

// answer is what a client got.
type answer struct {
	*http.Response
	body []byte
	list listing
}

type listing struct {
	SearchSessionID string `json:"searchSessionId"`
	QueryHash       string `json:"queryHash"`
	ResultCount     int    `json:"resultCount"`
	Locale          string `json:"locale"`
	Currency        string `json:"currency"`
	Code            string `json:"code"`
	Errors          []struct{ Field, Code, Detail string }
	Degraded        []struct{ Part, Reason string }
	Listings        []struct {
		PropertyID   string   `json:"propertyId"`
		TenantID     string   `json:"tenantId"`
		Badges       []string `json:"badges"`
		BrandPeek    struct{ Neutral bool }
		RateSnapshot *struct {
			CheapestNightlyMinor string `json:"cheapestNightlyMinor"`
			CapturedAt           time.Time
			IsStale              bool `json:"isStale"`
		}
	}
	Pins []struct {
		PropertyID           string `json:"propertyId"`
		CheapestNightlyMinor string `json:"cheapestNightlyMinor"`
	}
}

func (a *answer) cookie() string {
	for _, c := range a.Cookies() {
		if c.Name == "gms_id" {
			return c.Value
		}
	}
	return ""
}

// do is send for an answer with a body.
func (h *house) do(method, path, body string, headers ...string) *answer {
	h.t.Helper()
	a := h.send(method, path, body, headers...)
	if err := json.Unmarshal(a.body, &a.list); err != nil {
		h.t.Fatalf("%s %s: %v in %s", method, path, err, a.body)
	}
	return a
}

// send sends a request through the pipeline and holds the answer against the API description.
func (h *house) send(method, path, body string, headers ...string) *answer {
	h.t.Helper()
	r := httptest.NewRequest(method, web.Base+path, strings.NewReader(body))
	if method == "POST" {
		r.Header.Set("Content-Type", "application/json")
	}
	r.Header.Set("User-Agent", firefox)
	for i := 0; i < len(headers); i += 2 {
		if headers[i+1] == "" {
			r.Header.Del(headers[i])
			continue
		}
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	h.mux.ServeHTTP(w, r)
	a := &answer{Response: w.Result(), body: w.Body.Bytes()}
	h.conforms(r, a)
	return a
}

// find is a search that must be answered with 200.
func (h *house) find(body string, headers ...string) *answer {
	h.t.Helper()
	a := h.do("POST", "/search", body, headers...)
	if a.StatusCode != http.StatusOK {
		h.t.Fatalf("%d %s", a.StatusCode, a.body)
	}
	return a
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
		Status:                 a.StatusCode, Header: a.Header, Body: io.NopCloser(bytes.NewReader(a.body)),
		Options: &openapi3filter.Options{IncludeResponseStatus: true},
	})
	if err != nil {
		h.t.Errorf("the answer breaks the API description: %v\n%s", err, a.body)
	}
}

// request is a valid body for a city; with replaces parts of it.
func (h *house) request(city string, with ...string) string {
	in := h.now().AddDate(0, 0, 10)
	body := fmt.Sprintf(`{"geo":{"mode":"city","city":%q},"dates":{"checkIn":%q,"checkOut":%q},"occupancy":{"adults":2,"children":0,"rooms":1}}`,
		city, in.Format(time.DateOnly), in.AddDate(0, 0, 3).Format(time.DateOnly))
	for i := 0; i < len(with); i += 2 {
		if !strings.Contains(body, with[i]) {
			h.t.Fatalf("the request has no %s", with[i])
		}
		body = strings.Replace(body, with[i], with[i+1], 1)
	}
	return body
}

// rows counts the outbox by topic.
func (h *house) rows(topic string) (payloads []json.RawMessage) {
	h.t.Helper()
	rows, err := h.parts.DB.Query(context.Background(), `SELECT payload FROM bff_consumer.outbox WHERE topic = $1 ORDER BY id`, topic)
	if err != nil {
		h.t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var p json.RawMessage
		if err := rows.Scan(&p); err != nil {
			h.t.Fatal(err)
		}
		payloads = append(payloads, p)
	}
	if err := rows.Err(); err != nil {
		h.t.Fatal(err)
	}
	return payloads
}

// setFlags writes the flags file and waits until it is in force.
func (h *house) setFlags(document string) {
	h.t.Helper()
	if err := os.WriteFile(h.flags, []byte(document), 0o600); err != nil {
		h.t.Fatal(err)
	}
	want, err := flags.Parse([]byte(document), nil)
	if err != nil {
		h.t.Fatal(err)
	}
	h.eventually("the flags are in force", func() bool { return reflect.DeepEqual(h.parts.Flags.Current(), want) })
}

// eventually waits for what the stores and files do in their own time.
func (h *house) eventually(what string, is func() bool) {
	h.t.Helper()
	deadline := time.After(15 * time.Second)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !is() {
		select {
		case <-tick.C:
		case <-deadline:
			h.t.Fatalf("never: %s", what)
		}
	}
}

func (h *house) redisDo(args ...any) {
	h.t.Helper()
	if err := h.parts.Redis.Do(context.Background(), args...).Err(); err != nil {
		h.t.Fatal(err)
	}
}

// suspend does what the consumer of tenant.suspended.v1 does.
func (h *house) suspend(tenant string) {
	h.t.Helper()
	uuid, err := id.UUID(id.Tenant, tenant)
	if err != nil {
		h.t.Fatal(err)
	}
	ctx := context.Background()
	_, err = h.parts.DB.Exec(ctx, `
		INSERT INTO bff_consumer.tenant_suspended_cache (tenant_id, suspended_at, reason)
		VALUES ($1, now(), 'billing-overdue')`, uuid)
	if err != nil {
		h.t.Fatal(err)
	}
	if err := tenants.New(h.parts.Redis, h.parts.DB, h.parts.Keys, h.now).Suspend(ctx, tenant); err != nil {
		h.t.Fatal(err)
	}
}

// reinstate does what the consumer of tenant.reinstated.v1 does.
func (h *house) reinstate(tenant string) {
	h.t.Helper()
	uuid, err := id.UUID(id.Tenant, tenant)
	if err != nil {
		h.t.Fatal(err)
	}
	ctx := context.Background()
	if _, err := h.parts.DB.Exec(ctx, `DELETE FROM bff_consumer.tenant_suspended_cache WHERE tenant_id = $1`, uuid); err != nil {
		h.t.Fatal(err)
	}
	if err := tenants.New(h.parts.Redis, h.parts.DB, h.parts.Keys, h.now).Reinstate(ctx, tenant); err != nil {
		h.t.Fatal(err)
	}
}

// late is what a machine busy with other tests may add to an answer that comes at the end of its budget; one that hung
// would not come at all.
const late = 3 * time.Second
