// Package functest is the test harness of all functions: private stores, a clock moved by the test,
// requests through the whole pipeline, checks of responses against the OpenAPI documents, and
// access to the outbox. Only tests import it. It knows no function: handlers, request bodies and
// the responses of upstreams belong to the function's own tests.
//
// A function's harness_test.go embeds a Harness and adds its own handlers:
//
//	type harness struct{ *functest.Harness }
//
//	func newHarness(t testing.TB) *harness {
//		h := &harness{functest.New(t)}
//		h.BuildDeps(functest.Environment(t, h.Database, h.Redis.Addr, functest.UnreachableURL)) // sets h.Deps
//		h.Mount("GET "+web.BasePath+"/session", NewHandlers(h.Deps).Show)
//		return h
//	}
//
//	a := h.MustDo(200, "GET", "/session", cookie, "", "Accept-Language", "ps-AF")
//
// An internal endpoint needs no BuildDeps. It is built from h.Database, h.Redis.Addr and h.Now:
//
//	h.UseInternalAPI()
//	h.MountInternal("POST /internal/events/theme-published", requestTimeout, handler)
//	a := h.Push("/internal/events/theme-published", functest.NewPlatformEvent(subject, payload).Message())
//
// Tests read the stores through h.DB and h.RDB, whose timeouts are long. The function's own
// connections go through proxies: h.Redis.Stop, Hang and Break take Redis away,
// h.PostgresProxy.Break and Hang take Postgres away in a harness of NewWithProxy. Tests of
// different harnesses may run in parallel.
package functest

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/redis/go-redis/v9"

	"melmastoon.ghasi.io/bff-consumer/shared/testkit/localstores"
	"melmastoon.ghasi.io/bff-consumer/shared/testkit/pgtest"
	"melmastoon.ghasi.io/bff-consumer/shared/testkit/redistest"
	"melmastoon.ghasi.io/bff-consumer/shared/web"
	"melmastoon.ghasi.io/bff-consumer/shared/wiring"
)

// Harness is an instance of a function's handlers with private stores. Do, Send and the readers of
// the stores are safe for concurrent use; mounting and building are not.
type Harness struct {
	T testing.TB
	*Clock
	Log *Log // of all mounted functions

	Database string // URL of the database for the function
	// simulates faults for the function; nil unless NewWithProxy made the harness
	PostgresProxy *localstores.Proxy
	DB            *pgxpool.Pool // the test's own connection, without the proxy

	Redis *redistest.Redis      // the function uses Redis.Addr
	RDB   redis.UniversalClient // the test's own client

	Deps       *wiring.Deps       // dependencies of a guest-facing function, set by BuildDeps
	RoundTrips *redistest.Counter // of Deps.Redis

	APIDocument string // OpenAPI document of the responses; "" checks none
	BasePath    string // prefix of the paths of Do
	Personal    bool   // every success must be a personal response

	functions map[string]*web.Function // by pattern
	mux       *http.ServeMux
}

// New returns a harness with empty stores, at the present time, with no function mounted. The end
// of the test stops the Redis server and drops the database. Without an installed Postgres or Redis
// the test is skipped, and fails in CI.
func New(t testing.TB) *Harness {
	t.Helper()
	h := &Harness{
		T: t, Clock: &Clock{}, Log: &Log{}, Redis: redistest.NewServer(t),
		APIDocument: "../../api/consumer.openapi.yaml", BasePath: web.BasePath, functions: map[string]*web.Function{},
	}
	h.Set(time.Now())
	h.RDB = h.Redis.Client()
	h.Database = pgtest.URL(t)
	h.DB = pgtest.Open(t, h.Database)
	return h
}

// NewWithProxy is New with a proxy before the database. Only tests that simulate faults of Postgres
// use it, because the proxy costs time on a busy machine.
func NewWithProxy(t testing.TB) *Harness {
	t.Helper()
	h := New(t)
	h.Database, h.PostgresProxy = pgtest.ProxyTo(t, h.Database)
	return h
}

// Heal heals the proxy of Postgres, if there is a proxy. Call it before closing a pool: closing a
// pool while the proxy hangs takes 15 s.
func (h *Harness) Heal() {
	if h.PostgresProxy != nil {
		h.PostgresProxy.Heal()
	}
}

// NewInstance returns another harness with the same stores and clock, with no function mounted, as
// a second instance of the service.
func (h *Harness) NewInstance() *Harness {
	other := *h
	other.Log, other.Deps, other.RoundTrips = &Log{}, nil, nil
	other.functions, other.mux = map[string]*web.Function{}, nil
	return &other
}

// SlackTime is the tolerance for a response at the end of its time budget, on a machine busy with
// other tests. A response that hangs never arrives, so the tolerance hides no hang.
const SlackTime = 3 * time.Second

// Eventually polls every 20 ms until is returns true, and fails the test after 15 s.
func (h *Harness) Eventually(what string, is func() bool) {
	h.T.Helper()
	deadline := time.After(15 * time.Second)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !is() {
		select {
		case <-tick.C:
		case <-deadline:
			h.T.Fatalf("did not happen within 15s: %s", what)
		}
	}
}

// PropertyID returns the id of the n-th property.
func PropertyID(n int) string { return fmt.Sprintf("ppt_%026d", n) }

// TenantID returns the id of the n-th tenant.
func TenantID(n int) string { return fmt.Sprintf("tnt_%026d", n) }
