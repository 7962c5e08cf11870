// Package functest owns what the tests of every function stand on: stores of the test's own, a clock that the test
// moves, requests through the whole pipeline, answers held against the API description, and what is in the outbox
// afterwards. Only tests import it. It never knows what a function does: the handlers, the bodies and the upstreams'
// answers are the function's own.
//
// A function's harness_test.go embeds a House and adds its own:
//
//	type house struct{ *functest.House }
//
//	func newHouse(t testing.TB) *house {
//		h := &house{functest.New(t)}
//		h.Open(functest.Environment(t, h.Database, h.Redis.Addr, functest.Nowhere)) // makes h.Parts, as setup.Guest does
//		h.Mount("GET "+web.Base+"/session", NewDesk(h.Parts).Show)
//		return h
//	}
//
//	a := h.Must(200, "GET", "/session", cookie, "", "Accept-Language", "ps-AF")
//
// A private door leaves Open out, builds itself from h.Database, h.Redis.Addr and h.Now, and says where it is
// described:
//
//	h.API, h.Base = "../../api/internal.openapi.yaml", "" // API "": not described, not checked
//
// The test looks at the stores by h.DB and h.RDB, which are patient; what the function uses is not, and is taken away
// by h.Redis.Stop and h.Redis.Hang and, in a house of Behind, by h.PG.Break and h.PG.Hang.
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

// Harness is one instance of a function's handlers and the world around it.
type Harness struct {
	T testing.TB
	*Clock
	Log *Log // of everything that is mounted

	Database      string             // URL for the function
	PostgresProxy *localstores.Proxy // takes the database away from the function; nil but in a house of Behind
	DB            *pgxpool.Pool      // the test's own way to the database, around PG

	Redis *redistest.Redis      // Redis.Addr is for the function
	RDB   redis.UniversalClient // the test's own client of it

	Deps       *wiring.Deps       // what a guest-facing function is made of, once Open was called
	RoundTrips *redistest.Counter // of Parts.Redis

	APIDocument string // the description that answers are held against; "" for none
	BasePath    string // what Ask puts before its path
	Personal    bool   // whatever is no refusal must say that it is one guest's

	functions map[string]*web.Function // by pattern
	mux       *http.ServeMux
}

// New is a house with empty stores, at the present time, with nothing mounted. All of it goes at the test's end.
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

// NewWithProxy is New with a database that can be taken away. The proxy costs some time, of which a busy machine has none to
// spare, so it is only for tests that use it.
func NewWithProxy(t testing.TB) *Harness {
	t.Helper()
	h := New(t)
	h.Database, h.PostgresProxy = pgtest.ProxyTo(t, h.Database)
	return h
}

// Heal ends what PG.Break and PG.Hang began, if there is a PG. A pool that is closed while the proxy hangs waits 15 s
// for its goodbyes, so whoever closes one in a cleanup heals first.
func (h *Harness) Heal() {
	if h.PostgresProxy != nil {
		h.PostgresProxy.Heal()
	}
}

// NewInstance is another instance with the same stores and the same clock, with nothing mounted.
func (h *Harness) NewInstance() *Harness {
	other := *h
	other.Log, other.Deps, other.RoundTrips = &Log{}, nil, nil
	other.functions, other.mux = map[string]*web.Function{}, nil
	return &other
}

// SlackTime is what a machine busy with other tests may add to an answer that comes at the end of its budget; one that hung
// would not come at all.
const SlackTime = 3 * time.Second

// Eventually waits for what the stores and files do in their own time.
func (h *Harness) Eventually(what string, is func() bool) {
	h.T.Helper()
	deadline := time.After(15 * time.Second)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !is() {
		select {
		case <-tick.C:
		case <-deadline:
			h.T.Fatalf("never: %s", what)
		}
	}
}

// PropertyID is the id of the n-th property.
func PropertyID(n int) string { return fmt.Sprintf("ppt_%026d", n) }

// TenantID is the id of the n-th tenant.
func TenantID(n int) string { return fmt.Sprintf("tnt_%026d", n) }
