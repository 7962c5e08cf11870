package guest_test

import (
	"context"
	"net/http"
	"os"
	"testing"
	"time"

	"melmastoon.ghasi.io/bff-consumer/shared/cache"
	"melmastoon.ghasi.io/bff-consumer/shared/guest"
	"melmastoon.ghasi.io/bff-consumer/shared/locale"
	"melmastoon.ghasi.io/bff-consumer/shared/money"
	"melmastoon.ghasi.io/bff-consumer/shared/problem"
	"melmastoon.ghasi.io/bff-consumer/shared/ratelimit"
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
	key := func(locale.Tag, money.Currency) []string { return []string{h.Deps.Keys.Key("cache", "x")} }
	personal := func(door *guest.Controller) web.Handler {
		return door.CountRejected(func(w http.ResponseWriter, r *http.Request) error {
			ctx, guest, err := door.Begin(w, r, key)
			if err != nil {
				return err
			}
			h.admitted++
			door.Finish(ctx, w, guest, nil, nil)
			if r.URL.Path == "/absent" {
				return problem.New(problem.ResourceNotFound, "Nothing there.", nil)
			}
			w.WriteHeader(http.StatusNoContent)
			return nil
		})
	}
	h.Mount("GET /read", personal(h.Deps.Guests))
	h.Mount("GET /absent", personal(h.Deps.Guests))
	h.Mount("GET /handoff", personal(h.Deps.Guests.WithClass(ratelimit.Handoff)))
	h.Mount("GET /telemetry", personal(h.Deps.Guests.WithClass(ratelimit.Telemetry)))
	h.Mount("GET /unread", h.Deps.Guests.CountRejected(func(http.ResponseWriter, *http.Request) error {
		return problem.New(problem.MalformedRequest, "Not JSON.", nil)
	}))
	h.Mount("GET /shared", func(w http.ResponseWriter, r *http.Request) error {
		ctx, look, err := h.Deps.Guests.BeginAnonymous(w, r, h.Deps.Keys.Key("cache", "shared"))
		if err != nil {
			return err
		}
		h.admitted++
		entry, _, err := h.Deps.Cache.GetOrLoad(ctx, h.Deps.Keys.Key("cache", "shared"), look.Prefetched, cache.Loader{TTL: time.Hour, Load: loadEmpty})
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
