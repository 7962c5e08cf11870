package gate_test

import (
	"context"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"melmastoon.ghasi.io/bff-consumer/shared/cache"
	"melmastoon.ghasi.io/bff-consumer/shared/gate"
	"melmastoon.ghasi.io/bff-consumer/shared/guest"
	"melmastoon.ghasi.io/bff-consumer/shared/problem"
	"melmastoon.ghasi.io/bff-consumer/shared/testkit/functest"
	"melmastoon.ghasi.io/bff-consumer/shared/web"
	"melmastoon.ghasi.io/bff-consumer/shared/wiring"
)

// harness mounts routes without a function behind the gate: a personal route of each class, /absent
// with a 404 after Begin, /malformed with a rejection before Begin, and the shared route /shared.
type harness struct {
	*functest.Harness
	admitted int // requests that passed the gate
}

// limitFlags returns flags with these limits and bot detection off.
func limitFlags(limits string) string {
	return `{"botMode":"off","limits":` + limits + `}`
}

// allClasses returns flags with the same limit for each class and bot detection off.
func allClasses(limit string) string {
	return limitFlags(`{"read":` + limit + `,"handoff":` + limit + `,"telemetry":` + limit + `}`)
}

// observing turns bot detection on in flags of allClasses.
func observing(flags, mode string) string { return strings.Replace(flags, `"off"`, `"`+mode+`"`, 1) }

func newHarness(t testing.TB, flags string) *harness {
	t.Helper()
	return mountOn(functest.New(t), flags)
}

// newHarnessWithProxy returns a harness whose Postgres a test can break.
func newHarnessWithProxy(t testing.TB, flags string) *harness {
	t.Helper()
	return mountOn(functest.NewWithProxy(t), flags)
}

func mountOn(base *functest.Harness, flags string) *harness {
	base.T.Helper()
	h := &harness{Harness: base}
	h.APIDocument, h.BasePath = "", ""
	h.mountRoutes(h.environment(flags))
	return h
}

func (h *harness) environment(flags string) wiring.Environment {
	h.T.Helper()
	e := functest.Environment(h.T, h.Database, h.Redis.Addr, functest.UnreachableURL)
	if err := os.WriteFile(e.FlagsFile, []byte(flags), 0o600); err != nil {
		h.T.Fatal(err)
	}
	return e
}

func (h *harness) mountRoutes(e wiring.Environment) {
	h.BuildDeps(e)
	guests := h.Deps.Guests
	h.Mount("GET /read", h.personal(guests))
	h.Mount("GET /absent", h.personal(guests))
	h.Mount("GET /handoff", h.personal(guests.WithClass(gate.Handoff)))
	h.Mount("GET /telemetry", h.personal(guests.WithClass(gate.Telemetry)))
	h.Mount("GET /malformed", func(w http.ResponseWriter, r *http.Request) error {
		return guests.CountRejected(w, r, problem.New(problem.MalformedRequest, "Not JSON.", nil))
	})
	h.Mount("GET /shared", func(w http.ResponseWriter, r *http.Request) error {
		key := h.Deps.Keys.Key("cache", "shared")
		var prefetched *cache.Pending
		ctx, _, err := guests.BeginAnonymous(w, r, func(ctx context.Context, pipe redis.Pipeliner) {
			prefetched = h.Deps.Cache.Enqueue(ctx, pipe, key)
		})
		if err != nil {
			return err
		}
		h.admitted++
		entry, _, err := h.Deps.Cache.GetOrLoad(ctx, key, prefetched, cache.Loader{TTL: time.Hour, Load: loadEmpty})
		if err != nil {
			return err
		}
		web.MarkShared(w, true, false)
		return entry.WriteShared(w, r)
	})
}

func (h *harness) personal(guests *guest.Controller) web.Handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		ctx, g, err := guests.Begin(w, r, nil)
		if err != nil {
			return err
		}
		h.admitted++
		guests.Finish(ctx, w, g, nil, nil)
		if r.URL.Path == "/absent" {
			return problem.New(problem.ResourceNotFound, "Nothing there.", nil)
		}
		w.WriteHeader(http.StatusNoContent)
		return nil
	}
}

func loadEmpty(context.Context) (cache.Loaded, error) {
	entry, err := cache.NewEntry(http.StatusOK, []byte(`{}`), nil, nil)
	return cache.Loaded{Entry: entry}, err
}

// getAs sends a GET as a client with the user agent, with the other headers of a browser, and with
// cookie unless it is empty.
func (h *harness) getAs(agent, path, cookie string, headers ...string) *functest.Result {
	h.T.Helper()
	browser := []string{"User-Agent", agent, "Accept", "*/*", "Accept-Language", "fa-AF"}
	return h.Do("GET", path, cookie, "", append(browser, headers...)...)
}
