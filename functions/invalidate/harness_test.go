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
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/gorillamux"
	"github.com/redis/go-redis/v9"

	"melmastoon.ghasi.io/bff-consumer/shared/cache"
	"melmastoon.ghasi.io/bff-consumer/shared/config"
	"melmastoon.ghasi.io/bff-consumer/shared/id"
	"melmastoon.ghasi.io/bff-consumer/shared/lifecycle"
	"melmastoon.ghasi.io/bff-consumer/shared/postgres"
	"melmastoon.ghasi.io/bff-consumer/shared/redisclient"
	"melmastoon.ghasi.io/bff-consumer/shared/tenants"
	"melmastoon.ghasi.io/bff-consumer/shared/testkit/pgtest"
	"melmastoon.ghasi.io/bff-consumer/shared/testkit/redistest"
	"melmastoon.ghasi.io/bff-consumer/shared/web"
)

var keys = redisclient.Keys{Env: "test"}

// harness is the four functions with real stores.
type harness struct {
	t        testing.TB
	handlers *handlers
	redis    *redistest.Redis
	rdb      redis.UniversalClient
	mux      *http.ServeMux

	mu  sync.Mutex
	log bytes.Buffer
}

func newHarness(t testing.TB) *harness { return newHarnessOn(t, pgtest.URL(t)) }

// newHarnessOn is newHouse with a database that a test can take away.
func newHarnessOn(t testing.TB, database string) *harness {
	t.Helper()
	h := &harness{t: t, redis: redistest.NewServer(t), mux: http.NewServeMux()}
	h.rdb = h.redis.Client()
	var err error
	if h.handlers, err = build(context.Background(), config.Environment{Env: keys.Env, RedisAddr: h.redis.Addr, Postgres: postgres.Config{URL: database, MaxConns: 8}}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.handlers.db.Close)
	for path, handler := range map[string]web.Handler{
		"theme-published": h.handlers.themePublished(), "listing-indexed": h.handlers.listingIndexed(),
		"tenant-suspended": h.handlers.tenantSuspended(), "tenant-reinstated": h.handlers.tenantReinstated(),
	} {
		h.mount("POST /internal/events/"+path, handler)
	}
	return h
}

func (h *harness) mount(pattern string, handler web.Handler) {
	f := web.NewInternal("Test", pattern, requestTimeout, func(context.Context, *lifecycle.WarmUp) (web.Handler, error) { return handler, nil })
	if err := f.OpenWithLog(context.Background(), h); err != nil {
		h.t.Fatal(err)
	}
	h.mux.Handle(pattern[strings.Index(pattern, "/"):], f)
}

// Write takes the log.
func (h *harness) Write(p []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.log.Write(p)
}

// lastLogRecord is the last record of the log.
func (h *harness) lastLogRecord() map[string]any {
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

// response is the answer to a delivery.
type response struct {
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

// platformEvent is an event of the platform, as its producer would publish it.
type platformEvent struct {
	path, id, payload string
}

func newPlatformEvent(path, payload string) platformEvent {
	return platformEvent{path, id.New(id.Event, time.Now()), payload}
}

func (e platformEvent) data() string {
	return fmt.Sprintf(`{"envelope":{"eventId":%q,"subject":%q,"version":1,"occurredAt":"2026-11-20T12:00:00.000Z","publishedAt":"2026-11-20T12:00:00.100Z",`+
		`"producer":"tenant-service","tenantId":null,"requestId":"r","traceId":"t"},"payload":%s}`, e.id, subjects[e.path], e.payload)
}

func (e platformEvent) pushBody(messageID string) string {
	return fmt.Sprintf(`{"message":{"data":%q,"messageId":%q,"publishTime":"2026-11-20T12:00:00.123456Z","attributes":{}},"subscription":"projects/p/subscriptions/s","deliveryAttempt":2}`,
		base64.StdEncoding.EncodeToString([]byte(e.data())), messageID)
}

func (h *harness) deliver(e platformEvent) response {
	h.t.Helper()
	return h.post(e.path, e.pushBody("m-"+e.id))
}

// mustProcess delivers what must have its effect, or have had it.
func (h *harness) mustProcess(e platformEvent) response {
	h.t.Helper()
	got := h.deliver(e)
	if got.Status != 200 || got.Outcome != "done" && got.Outcome != "again" {
		h.t.Errorf("%s: %+v", e.data(), got)
	}
	return got
}

func (h *harness) post(path, body string, headers ...string) response {
	h.t.Helper()
	r := httptest.NewRequest("POST", "/internal/events/"+path, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	h.mux.ServeHTTP(w, r)
	h.validateResponse(r, w)
	got := response{}
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

// validateResponse holds an answer against the API description.
func (h *harness) validateResponse(r *http.Request, w *httptest.ResponseRecorder) {
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

// queryValue reads one value from Postgres.
func queryValue[T any](h *harness, sql string, args ...any) (v T) {
	h.t.Helper()
	if err := h.handlers.db.QueryRow(context.Background(), sql, args...).Scan(&v); err != nil {
		h.t.Fatalf("%v: %s", err, sql)
	}
	return v
}

func (h *harness) isProcessed(e platformEvent) bool {
	return queryValue[bool](h, `SELECT coalesce(bool_or(processed_at IS NOT NULL), false) FROM bff_consumer.inbox WHERE event_id = $1::text`, e.id)
}

func (h *harness) countQuarantined() int {
	return queryValue[int](h, `SELECT count(*) FROM bff_consumer.inbox_parked`)
}

// addCacheEntry puts an entry with those tags in the cache.
func (h *harness) addCacheEntry(name string, tags ...string) {
	h.t.Helper()
	_, state, err := h.handlers.cache.GetOrLoad(context.Background(), keys.Key("cache", "test", name), nil, loaderWithTags(tags...))
	if err != nil || state != cache.Miss {
		h.t.Fatal(name, state, err)
	}
	if h.cacheState(name) != cache.Hit {
		h.t.Fatal(name, "was not stored")
	}
}

func loaderWithTags(tags ...string) cache.Loader {
	return cache.Loader{TTL: time.Minute, Load: func(context.Context) (cache.Loaded, error) {
		entry, err := cache.NewEntry(200, []byte("{}"), nil, nil)
		return cache.Loaded{Entry: entry, Tags: tags}, err
	}}
}

// cacheState is Hit while the entry is there.
func (h *harness) cacheState(name string) cache.State {
	h.t.Helper()
	n, err := h.rdb.Exists(context.Background(), keys.Key("cache", "test", name)).Result()
	if err != nil {
		h.t.Fatal(err)
	}
	return map[int64]cache.State{0: cache.Miss, 1: cache.Hit}[n]
}

// isSuspended is what an instance that has just started says of a tenant: whether it is suspended.
func (h *harness) isSuspended(tenant string) bool {
	h.t.Helper()
	return readSuspended(h.t, tenants.New(h.rdb, h.handlers.db, keys, time.Now), h.rdb, tenant)
}

// readSuspended asks as admission does.
func readSuspended(t testing.TB, desk *tenants.SuspensionCache, rdb redis.UniversalClient, tenant string) bool {
	t.Helper()
	ctx := context.Background()
	pipe := rdb.Pipeline()
	peeked := desk.Enqueue(ctx, pipe)
	_, _ = pipe.Exec(ctx) // the command has its own error
	s := desk.Resolve(ctx, peeked)
	if !s.Known() {
		t.Error("nothing is known")
	}
	return s.Has(tenant)
}

func newTenantID() string   { return id.New(id.Tenant, time.Now()) }
func newPropertyID() string { return id.New(id.Property, time.Now()) }

func suspendedEvent(tenant string, at time.Time) platformEvent {
	return newPlatformEvent("tenant-suspended", fmt.Sprintf(`{"tenantId":%q,"reason":"billing-overdue","suspendedAt":%q}`, tenant, formatTime(at)))
}

func reinstatedEvent(tenant string, at time.Time) platformEvent {
	return newPlatformEvent("tenant-reinstated", fmt.Sprintf(`{"tenantId":%q,"reinstatedAt":%q}`, tenant, formatTime(at)))
}

func themeEvent(tenant string) platformEvent {
	return newPlatformEvent("theme-published", fmt.Sprintf(`{"tenantId":%q,"themeId":"thm_1","publishedVersion":"thv_1","publishedAt":"2026-11-20T12:00:00.000Z"}`, tenant))
}

func listingEvent(property, cell string) platformEvent {
	return newPlatformEvent("listing-indexed", fmt.Sprintf(`{"tenantId":"tnt_00000000000000000000000001","propertyId":%q,"indexedAt":"2026-11-20T12:00:00.000Z","geoCell":%q}`, property, cell))
}

func formatTime(at time.Time) string { return at.UTC().Format("2006-01-02T15:04:05.000Z") }
