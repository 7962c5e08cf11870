package guest_test

import (
	"context"
	"net/http"
	"os"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"melmastoon.ghasi.io/bff-consumer/shared/cache"
	"melmastoon.ghasi.io/bff-consumer/shared/gate"
	"melmastoon.ghasi.io/bff-consumer/shared/guest"
	"melmastoon.ghasi.io/bff-consumer/shared/problem"
	"melmastoon.ghasi.io/bff-consumer/shared/session"
	"melmastoon.ghasi.io/bff-consumer/shared/testkit/functest"
	"melmastoon.ghasi.io/bff-consumer/shared/web"
	"melmastoon.ghasi.io/bff-consumer/shared/wiring"
)

// harness is doors with nothing behind them: a personal route that reads one cache entry, one of each other class, one that
// cannot read its request, and a shared route.
type harness struct {
	*functest.Harness
	admitted int // requests that came in
}

// limitFlags are the limits of a document, with nobody hunting bots.
func limitFlags(limits string) string {
	return `{"botMode":"off","limits":` + limits + `}`
}

func newHarness(t testing.TB, flags string) *harness {
	h := &harness{Harness: functest.New(t)}
	e := functest.Environment(t, h.Database, h.Redis.Addr, functest.UnreachableURL)
	if err := os.WriteFile(e.FlagsFile, []byte(flags), 0o600); err != nil {
		t.Fatal(err)
	}
	h.APIDocument, h.BasePath = "", ""
	h.mountRoutes(e)
	return h
}

func (h *harness) mountRoutes(e wiring.Environment) {
	h.BuildDeps(e)
	readEntry := func(ctx context.Context, pipe redis.Pipeliner, _ *session.Request) {
		h.Deps.Cache.Enqueue(ctx, pipe, h.Deps.Keys.Key("cache", "x"))
	}
	personal := func(guests *guest.Controller) web.Handler {
		return func(w http.ResponseWriter, r *http.Request) error {
			ctx, g, err := guests.Begin(w, r, readEntry)
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
	h.Mount("GET /read", personal(h.Deps.Guests))
	h.Mount("GET /absent", personal(h.Deps.Guests))
	h.Mount("GET /handoff", personal(h.Deps.Guests.WithClass(gate.Handoff)))
	h.Mount("GET /telemetry", personal(h.Deps.Guests.WithClass(gate.Telemetry)))
	h.Mount("GET /unread", func(w http.ResponseWriter, r *http.Request) error {
		return h.Deps.Guests.CountRejected(w, r, problem.New(problem.MalformedRequest, "Not JSON.", nil))
	})
	h.Mount("GET /shared", func(w http.ResponseWriter, r *http.Request) error {
		key := h.Deps.Keys.Key("cache", "shared")
		var prefetched *cache.Pending
		ctx, _, err := h.Deps.Guests.BeginAnonymous(w, r, func(ctx context.Context, pipe redis.Pipeliner) {
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

func loadEmpty(context.Context) (cache.Loaded, error) {
	entry, err := cache.NewEntry(http.StatusOK, []byte(`{}`), nil, nil)
	return cache.Loaded{Entry: entry}, err
}
