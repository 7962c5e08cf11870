package invalidate

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"melmastoon.ghasi.io/bff-consumer/shared/cache"
	"melmastoon.ghasi.io/bff-consumer/shared/config"
	"melmastoon.ghasi.io/bff-consumer/shared/id"
	"melmastoon.ghasi.io/bff-consumer/shared/postgres"
	"melmastoon.ghasi.io/bff-consumer/shared/redisclient"
	"melmastoon.ghasi.io/bff-consumer/shared/tenants"
	"melmastoon.ghasi.io/bff-consumer/shared/testkit/functest"
	"melmastoon.ghasi.io/bff-consumer/shared/web"
)

var keys = redisclient.Keys{Env: "test"}

// harness adds the four entry points to the common harness.
type harness struct {
	*functest.Harness
	handlers *handlers
}

func newHarness(t testing.TB) *harness {
	t.Helper()
	return openHarness(functest.New(t))
}

// newHarnessWithProxy returns a harness whose database a test can make unavailable.
func newHarnessWithProxy(t testing.TB) *harness {
	t.Helper()
	return openHarness(functest.NewWithProxy(t))
}

func openHarness(f *functest.Harness) *harness {
	f.T.Helper()
	h := &harness{Harness: f}
	h.UseInternalAPI()
	var err error
	h.handlers, err = build(context.Background(), config.Environment{
		Env: keys.Env, RedisAddr: h.Redis.Addr, Postgres: postgres.Config{URL: h.Database, MaxConns: 8},
	})
	if err != nil {
		h.T.Fatal(err)
	}
	h.handlers.now = h.Now
	h.T.Cleanup(func() {
		h.Heal()
		h.handlers.db.Close()
	})
	for path, handler := range map[string]web.Handler{
		themePath: h.handlers.themePublished(), listingPath: h.handlers.listingIndexed(),
		suspendedPath: h.handlers.tenantSuspended(), reinstatedPath: h.handlers.tenantReinstated(),
	} {
		h.MountInternal("POST "+path, requestTimeout, handler)
	}
	return h
}

const (
	themePath      = "/internal/events/theme-published"
	listingPath    = "/internal/events/listing-indexed"
	suspendedPath  = "/internal/events/tenant-suspended"
	reinstatedPath = "/internal/events/tenant-reinstated"
)

// paths are the entry points by subject.
var paths = map[string]string{
	subjectThemePublished: themePath, subjectListingIndexed: listingPath,
	subjectTenantSuspended: suspendedPath, subjectTenantReinstated: reinstatedPath,
}

// response is the response to a delivery.
type response struct {
	Status   int
	Outcome  string
	EventID  string
	Removed  int
	Conflict bool
	Reason   string
}

// deliver pushes an event to the entry point of its subject.
func (h *harness) deliver(e functest.PlatformEvent) response {
	h.T.Helper()
	return h.deliverTo(paths[e.Subject], e)
}

// deliverTo pushes an event to an entry point.
func (h *harness) deliverTo(path string, e functest.PlatformEvent) response {
	h.T.Helper()
	return h.decode(h.Push(path, e.Message()))
}

// mustProcess delivers an event and fails the test unless it is processed or a duplicate.
func (h *harness) mustProcess(e functest.PlatformEvent) response {
	h.T.Helper()
	got := h.deliver(e)
	if got.Status != 200 || got.Outcome != "done" && got.Outcome != "again" {
		h.T.Errorf("%s: got %+v, want outcome done or again", e.Data(), got)
	}
	return got
}

// post sends a body to an entry point.
func (h *harness) post(path, body string, headers ...string) response {
	h.T.Helper()
	return h.decode(h.Do("POST", path, "", body, headers...))
}

func (h *harness) decode(res *functest.Result) response {
	h.T.Helper()
	got := response{}
	if err := json.Unmarshal([]byte(res.Text), &got); err != nil && res.StatusCode == 200 {
		h.T.Errorf("response body: %v in %s", err, res.Text)
	}
	got.Status = res.StatusCode
	return got
}

// queryValue returns the value that a query selects.
func queryValue[T any](h *harness, sql string, args ...any) T {
	h.T.Helper()
	return functest.QueryValue[T](h.Harness, sql, args...)
}

// expectLogRecord checks fields of the newest log record.
func (h *harness) expectLogRecord(want map[string]any) {
	h.T.Helper()
	record := h.Log.Last(h.T)
	for field, value := range want {
		if record[field] != value {
			h.T.Errorf("log field %s: got %v, want %v", field, record[field], value)
		}
	}
}

// addCacheEntry stores a cache entry with tags.
func (h *harness) addCacheEntry(name string, tags ...string) {
	h.T.Helper()
	_, state, err := h.handlers.cache.GetOrLoad(context.Background(), keys.Key("cache", "test", name), nil, loaderWithTags(tags...))
	if err != nil || state != cache.Miss {
		h.T.Fatalf("load %s: got %s, %v, want a miss", name, state, err)
	}
	h.expectCacheState(name, cache.Hit)
}

func loaderWithTags(tags ...string) cache.Loader {
	return cache.Loader{TTL: time.Minute, Load: func(context.Context) (cache.Loaded, error) {
		entry, err := cache.NewEntry(200, []byte("{}"), nil, nil)
		return cache.Loaded{Entry: entry, Tags: tags}, err
	}}
}

// cacheState returns Hit while the entry is in Redis, and Miss afterwards.
func (h *harness) cacheState(name string) cache.State {
	h.T.Helper()
	n, err := h.RDB.Exists(context.Background(), keys.Key("cache", "test", name)).Result()
	if err != nil {
		h.T.Fatal(err)
	}
	return map[int64]cache.State{0: cache.Miss, 1: cache.Hit}[n]
}

func (h *harness) expectCacheState(name string, want cache.State) {
	h.T.Helper()
	if got := h.cacheState(name); got != want {
		h.T.Errorf("cache entry %s: got %s, want %s", name, got, want)
	}
}

// isSuspended reports whether a newly started instance regards a tenant as suspended.
func (h *harness) isSuspended(tenant string) bool {
	h.T.Helper()
	return readSuspended(h.T, tenants.New(h.RDB, h.handlers.db, keys, time.Now), h.RDB, tenant)
}

func (h *harness) expectSuspended(tenant string, want bool) {
	h.T.Helper()
	if got := h.isSuspended(tenant); got != want {
		h.T.Errorf("tenant %s suspended: got %t, want %t", tenant, got, want)
	}
}

// readSuspended reads the status of a tenant as a guest's request does.
func readSuspended(t testing.TB, suspensions *tenants.SuspensionCache, rdb redis.UniversalClient, tenant string) bool {
	t.Helper()
	ctx := context.Background()
	pipe := rdb.Pipeline()
	queued := suspensions.Enqueue(ctx, pipe)
	_, _ = pipe.Exec(ctx) // the queued command has its own error
	s := suspensions.Resolve(ctx, queued)
	if !s.Known() {
		t.Error("the set of suspended tenants is unknown")
	}
	return s.Has(tenant)
}

func newTenantID() string   { return id.New(id.Tenant, time.Now()) }
func newPropertyID() string { return id.New(id.Property, time.Now()) }

func suspendedEvent(tenant string, at time.Time) functest.PlatformEvent {
	return functest.NewPlatformEvent(subjectTenantSuspended, fmt.Sprintf(`{"tenantId":%q,"reason":"billing-overdue","suspendedAt":%q}`, tenant, formatTime(at)))
}

func reinstatedEvent(tenant string, at time.Time) functest.PlatformEvent {
	return functest.NewPlatformEvent(subjectTenantReinstated, fmt.Sprintf(`{"tenantId":%q,"reinstatedAt":%q}`, tenant, formatTime(at)))
}

func themeEvent(tenant string) functest.PlatformEvent {
	return functest.NewPlatformEvent(subjectThemePublished, fmt.Sprintf(`{"tenantId":%q,"themeId":"thm_1","publishedVersion":"thv_1","publishedAt":"2026-11-20T12:00:00.000Z"}`, tenant))
}

func listingEvent(property, cell string) functest.PlatformEvent {
	return functest.NewPlatformEvent(subjectListingIndexed, fmt.Sprintf(`{"tenantId":"tnt_00000000000000000000000001","propertyId":%q,"indexedAt":"2026-11-20T12:00:00.000Z","geoCell":%q}`, property, cell))
}

func formatTime(at time.Time) string { return at.UTC().Format("2006-01-02T15:04:05.000Z") }
