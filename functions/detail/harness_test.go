package detail

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

	"melmastoon.ghasi.io/bff-consumer/shared/deptest"
	"melmastoon.ghasi.io/bff-consumer/shared/handoff"
	"melmastoon.ghasi.io/bff-consumer/shared/id"
	"melmastoon.ghasi.io/bff-consumer/shared/keyring"
	"melmastoon.ghasi.io/bff-consumer/shared/pgtest"
	"melmastoon.ghasi.io/bff-consumer/shared/redistest"
	"melmastoon.ghasi.io/bff-consumer/shared/setup"
	"melmastoon.ghasi.io/bff-consumer/shared/tenants"
	"melmastoon.ghasi.io/bff-consumer/shared/web"
)

func TestDeps(t *testing.T) { deptest.Golden(t) }

// house is the two functions of this module with real stores, a clock that tests move and upstreams that tests command.
type house struct {
	t     testing.TB
	parts *setup.Parts
	up    *upstreams
	redis *redistest.Redis
	trips *redistest.Counter
	log   lockedBuffer
	time  atomic.Int64
	mux   *http.ServeMux
}

var serial atomic.Int64 // makes the names of functions under test unique in the registry

func newHouse(t testing.TB) *house {
	t.Helper()
	h := &house{t: t, redis: redistest.Server(t)}
	h.time.Store(time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC).UnixMilli())
	h.up = newUpstreams(t, h.now)
	h.open(pgtest.URL(t))
	return h
}

// beside is another instance of the functions: the same stores, upstreams and time, a process of its own.
func (h *house) beside() *house {
	h.t.Helper()
	other := &house{t: h.t, redis: h.redis, up: h.up}
	other.time.Store(h.time.Load())
	other.open(h.parts.DB.Config().ConnString())
	return other
}

func (h *house) open(database string) {
	h.t.Helper()
	ring, err := keyring.Parse("test:QUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFB")
	if err != nil {
		h.t.Fatal(err)
	}
	h.parts, err = setup.Build(context.Background(), setup.Environment{
		Env: "test", Region: "asia-south1", RedisAddr: h.redis.Addr, DatabaseURL: database, DBMaxConns: 4,
		SearchURL: h.up.search.URL, PricingURL: h.up.pricing.URL, PropertyURL: h.up.property.URL, ThemeURL: h.up.theme.URL,
		UpstreamAuth: "none", SessionKeys: ring, Peppers: ring,
	}, h.now)
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(h.parts.DB.Close)
	h.trips = redistest.Count(h.parts.Redis)
	h.mux = http.NewServeMux()
	h.mount("GET "+web.Base+"/hotels/{propertyId}", NewDetail(h.parts, handoff.Link{}).Serve)
	h.mount("GET "+web.Base+"/hotels/{propertyId}/availability", NewAvailability(h.parts).Serve)
}

func (h *house) mount(pattern string, handler web.Handler) {
	name := fmt.Sprintf("Test%d", serial.Add(1))
	web.Open(name, pattern, func(context.Context) (web.Handler, error) { return handler, nil })
	for _, f := range web.Functions() {
		if f.Name == name {
			if err := f.OpenTo(context.Background(), &h.log); err != nil {
				h.t.Fatal(err)
			}
			h.mux.Handle(pattern[strings.Index(pattern, "/"):], f)
		}
	}
}

func (h *house) now() time.Time { return time.UnixMilli(h.time.Load()).UTC() }

func (h *house) advance(d time.Duration) { h.time.Add(d.Milliseconds()) }

type lockedBuffer struct {
	mu      sync.Mutex
	b       bytes.Buffer
	dropped bool
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.dropped {
		return len(p), nil
	}
	return l.b.Write(p)
}

// drop throws away what is written from now on.
func (l *lockedBuffer) drop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.dropped = true
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// answer is what a client got.
type answer struct {
	*http.Response
	body []byte
	content
}

// content is the members of either body, or of a problem.
type content struct {
	Code   string `json:"code"`
	Errors []struct{ Field, Code, Detail string }

	Locale, Currency string
	Degraded         []struct{ Part, Reason string }
	Property         struct {
		PropertyID, TenantID string
		Name                 struct{ Default string }
		GuestRating          *struct{ Count int }
		Badges               []string
	}
	BrandPeek struct {
		PrimaryColor string
		Neutral      bool
	}
	DefaultStay struct {
		Dates struct{ CheckIn, CheckOut string }
	}
	CheapestRateSnapshot *struct {
		CheapestNightlyMinor string
		CapturedAt           time.Time
		IsStale              bool
	}
	PriceCalendarPreview []struct {
		Date    string
		IsStale bool
	}
	SimilarProperties []struct{ PropertyID, TenantID string }
	PopularitySignals *struct{ BookedLast24h, ViewedLast1h int }
	HandoffHint       struct {
		URL        string
		TTLSeconds int
	}

	PropertyID, From, To string
	Days                 []struct {
		Date                    string
		Available               bool
		CheapestMinor, Currency string
		IsStale                 bool
	}
}

func (a *answer) state() string { return a.Header.Get("X-Cache") }

// lacks is the parts that are named as missing, comma-joined.
func (a *answer) lacks() string {
	var parts []string
	for _, d := range a.Degraded {
		parts = append(parts, d.Part)
	}
	return strings.Join(parts, ",")
}

// get sends a request through the pipeline and holds the answer against the API description.
func (h *house) get(path string, headers ...string) *answer {
	h.t.Helper()
	return h.send(http.MethodGet, path, headers...)
}

func (h *house) send(method, path string, headers ...string) *answer {
	h.t.Helper()
	r := httptest.NewRequest(method, web.Base+path, nil)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	h.mux.ServeHTTP(w, r)
	a := &answer{Response: w.Result(), body: w.Body.Bytes()}
	if method == http.MethodGet && r.Header.Get("Accept-Encoding") == "" {
		h.conforms(r, a)
		if len(a.body) > 0 {
			if err := json.Unmarshal(a.body, &a.content); err != nil {
				h.t.Errorf("%s %s: %v in %s", method, path, err, a.body)
			}
		}
	}
	if a.Header.Get("Set-Cookie") != "" {
		h.t.Errorf("%s %s sets a cookie", method, path)
	}
	return a
}

// ok is a get that must be answered with 200.
func (h *house) ok(path string, headers ...string) *answer {
	h.t.Helper()
	a := h.get(path, headers...)
	if a.StatusCode != http.StatusOK {
		h.t.Fatalf("%s: %d %s", path, a.StatusCode, a.body)
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

// eventually waits for what the stores do in their own time.
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

// suspend does what the consumer of tenant.suspended.v1 does, but empties nothing.
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
	if err := h.others().Suspend(ctx, tenant); err != nil {
		h.t.Fatal(err)
	}
}

func (h *house) others() *tenants.Tenants {
	return tenants.New(h.parts.Redis, h.parts.DB, h.parts.Keys, h.now)
}

// late is what a machine busy with other tests may add to an answer that comes at the end of its budget; one that hung
// would not come at all.
const late = 3 * time.Second
