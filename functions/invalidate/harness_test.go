package invalidate

import (
	"bytes"
	"context"
	"encoding/base64"
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
	"github.com/redis/go-redis/v9"

	"melmastoon.ghasi.io/bff-consumer/shared/cache"
	"melmastoon.ghasi.io/bff-consumer/shared/id"
	"melmastoon.ghasi.io/bff-consumer/shared/keyspace"
	"melmastoon.ghasi.io/bff-consumer/shared/pgtest"
	"melmastoon.ghasi.io/bff-consumer/shared/redistest"
	"melmastoon.ghasi.io/bff-consumer/shared/setup/basis"
	"melmastoon.ghasi.io/bff-consumer/shared/tenants"
	"melmastoon.ghasi.io/bff-consumer/shared/web"
)

var keys = keyspace.Keys{Env: "test"}

// house is the four functions with real stores.
type house struct {
	t     testing.TB
	parts *parts
	redis *redistest.Redis
	rdb   redis.UniversalClient
	mux   *http.ServeMux

	mu  sync.Mutex
	log bytes.Buffer
}

func newHouse(t testing.TB) *house { return newHouseOn(t, pgtest.URL(t)) }

// newHouseOn is newHouse with a database that a test can take away.
func newHouseOn(t testing.TB, database string) *house {
	t.Helper()
	h := &house{t: t, redis: redistest.Server(t), mux: http.NewServeMux()}
	h.rdb = h.redis.Client()
	var err error
	if h.parts, err = build(context.Background(), basis.Environment{Env: keys.Env, RedisAddr: h.redis.Addr, DatabaseURL: database, DBMaxConns: 8}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.parts.db.Close)
	for path, handler := range map[string]web.Handler{
		"theme-published": h.parts.themePublished(), "listing-indexed": h.parts.listingIndexed(),
		"tenant-suspended": h.parts.tenantSuspended(), "tenant-reinstated": h.parts.tenantReinstated(),
	} {
		h.mount("POST /internal/events/"+path, handler)
	}
	return h
}

var number atomic.Int64 // makes the names of functions under test unique in the registry

func (h *house) mount(pattern string, handler web.Handler) {
	name := fmt.Sprintf("Test%d", number.Add(1))
	web.OpenWithin(name, pattern, budget, func(context.Context) (web.Handler, error) { return handler, nil })
	for _, f := range web.Functions() {
		if f.Name == name {
			if err := f.OpenTo(context.Background(), h); err != nil {
				h.t.Fatal(err)
			}
			h.mux.Handle(pattern[strings.Index(pattern, "/"):], f)
		}
	}
}

// Write takes the log.
func (h *house) Write(p []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.log.Write(p)
}

// logged is the last record of the log.
func (h *house) logged() map[string]any {
	h.t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	lines := bytes.Split(bytes.TrimSpace(h.log.Bytes()), []byte("\n"))
	var record map[string]any
	if err := json.Unmarshal(lines[len(lines)-1], &record); err != nil {
		h.t.Fatal(err)
	}
	return record
}

// receipt is the answer to a delivery.
type receipt struct {
	Status   int
	Outcome  string
	EventID  string
	Removed  int
	Conflict bool
	Reason   string
}

var subjects = map[string]string{
	"theme-published": subjectThemePublished, "listing-indexed": subjectListingIndexed,
	"tenant-suspended": subjectTenantSuspended, "tenant-reinstated": subjectTenantReinstated,
}

// told is an event of the platform, as its producer would publish it.
type told struct {
	path, id, payload string
}

func tell(path, payload string) told {
	return told{path, id.New(id.Event, time.Now()), payload}
}

func (e told) data() string {
	return fmt.Sprintf(`{"envelope":{"eventId":%q,"subject":%q,"version":1,"occurredAt":"2026-11-20T12:00:00.000Z","publishedAt":"2026-11-20T12:00:00.100Z",`+
		`"producer":"tenant-service","tenantId":null,"requestId":"r","traceId":"t"},"payload":%s}`, e.id, subjects[e.path], e.payload)
}

func (e told) push(messageID string) string {
	return fmt.Sprintf(`{"message":{"data":%q,"messageId":%q,"publishTime":"2026-11-20T12:00:00.123456Z","attributes":{}},"subscription":"projects/p/subscriptions/s","deliveryAttempt":2}`,
		base64.StdEncoding.EncodeToString([]byte(e.data())), messageID)
}

func (h *house) deliver(e told) receipt {
	h.t.Helper()
	return h.post(e.path, e.push("m-"+e.id))
}

// done delivers what must have its effect, or have had it.
func (h *house) done(e told) receipt {
	h.t.Helper()
	got := h.deliver(e)
	if got.Status != 200 || got.Outcome != "done" && got.Outcome != "again" {
		h.t.Errorf("%s: %+v", e.data(), got)
	}
	return got
}

func (h *house) post(path, body string, headers ...string) receipt {
	h.t.Helper()
	r := httptest.NewRequest("POST", "/internal/events/"+path, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	h.mux.ServeHTTP(w, r)
	h.conforms(r, w)
	got := receipt{}
	if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil && w.Code == 200 {
		h.t.Errorf("%v in %s", err, w.Body)
	}
	got.Status = w.Code
	return got
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

// conforms holds an answer against the API description.
func (h *house) conforms(r *http.Request, w *httptest.ResponseRecorder) {
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
		Status:                 w.Code, Header: w.Header(), Body: io.NopCloser(bytes.NewReader(w.Body.Bytes())),
		Options: &openapi3filter.Options{IncludeResponseStatus: true},
	})
	if err != nil {
		h.t.Errorf("the answer breaks the API description: %v\n%s", err, w.Body)
	}
}

// read reads one value from Postgres.
func read[T any](h *house, sql string, args ...any) (v T) {
	h.t.Helper()
	if err := h.parts.db.QueryRow(context.Background(), sql, args...).Scan(&v); err != nil {
		h.t.Fatalf("%v: %s", err, sql)
	}
	return v
}

func (h *house) processed(e told) bool {
	return read[bool](h, `SELECT coalesce(bool_or(processed_at IS NOT NULL), false) FROM bff_consumer.inbox WHERE event_id = $1::text`, e.id)
}

func (h *house) parked() int { return read[int](h, `SELECT count(*) FROM bff_consumer.inbox_parked`) }

// keep puts an entry with those tags in the cache.
func (h *house) keep(name string, tags ...string) {
	h.t.Helper()
	_, state, err := h.parts.cache.Do(context.Background(), keys.Key("cache", "test", name), nil, filling(tags...))
	if err != nil || state != cache.Miss {
		h.t.Fatal(name, state, err)
	}
	if h.state(name) != cache.Hit {
		h.t.Fatal(name, "was not stored")
	}
}

func filling(tags ...string) cache.Recipe {
	return cache.Recipe{TTL: time.Minute, Fill: func(context.Context) (cache.Filled, error) {
		entry, err := cache.Pack(200, []byte("{}"), nil, nil)
		return cache.Filled{Entry: entry, Tags: tags}, err
	}}
}

// state is Hit while the entry is there.
func (h *house) state(name string) cache.State {
	h.t.Helper()
	n, err := h.rdb.Exists(context.Background(), keys.Key("cache", "test", name)).Result()
	if err != nil {
		h.t.Fatal(err)
	}
	return map[int64]cache.State{0: cache.Miss, 1: cache.Hit}[n]
}

// shown is what an instance that has just started says of a tenant: whether it is suspended.
func (h *house) shown(tenant string) bool {
	h.t.Helper()
	return seen(h.t, tenants.New(h.rdb, h.parts.db, keys, time.Now), h.rdb, tenant)
}

// seen asks as admission does.
func seen(t testing.TB, desk *tenants.Tenants, rdb redis.UniversalClient, tenant string) bool {
	t.Helper()
	ctx := context.Background()
	pipe := rdb.Pipeline()
	peeked := desk.Peek(ctx, pipe)
	_, _ = pipe.Exec(ctx) // the command has its own error
	s := desk.Settle(ctx, peeked)
	if !s.Known() {
		t.Error("nothing is known")
	}
	return s.Has(tenant)
}

func newTenant() string   { return id.New(id.Tenant, time.Now()) }
func newProperty() string { return id.New(id.Property, time.Now()) }

func suspension(tenant string, at time.Time) told {
	return tell("tenant-suspended", fmt.Sprintf(`{"tenantId":%q,"reason":"billing-overdue","suspendedAt":%q}`, tenant, stamp(at)))
}

func reinstatement(tenant string, at time.Time) told {
	return tell("tenant-reinstated", fmt.Sprintf(`{"tenantId":%q,"reinstatedAt":%q}`, tenant, stamp(at)))
}

func theme(tenant string) told {
	return tell("theme-published", fmt.Sprintf(`{"tenantId":%q,"themeId":"thm_1","publishedVersion":"thv_1","publishedAt":"2026-11-20T12:00:00.000Z"}`, tenant))
}

func listing(property, cell string) told {
	return tell("listing-indexed", fmt.Sprintf(`{"tenantId":"tnt_00000000000000000000000001","propertyId":%q,"indexedAt":"2026-11-20T12:00:00.000Z","geoCell":%q}`, property, cell))
}

func stamp(at time.Time) string { return at.UTC().Format("2006-01-02T15:04:05.000Z") }
