package guest_test

import (
	"context"
	"net/http"
	"os"
	"testing"

	"github.com/redis/go-redis/v9"

	"melmastoon.ghasi.io/bff-consumer/shared/session"
	"melmastoon.ghasi.io/bff-consumer/shared/testkit/functest"
	"melmastoon.ghasi.io/bff-consumer/shared/wiring"
)

const (
	gateOff   = `{"limitsEnabled":false,"botMode":"off"}`
	unlimited = `{"cookie":1000000,"ip":1000000,"fingerprint":1000000}`
)

// allClasses returns flags with the same limit for each class, and a bot mode.
func allClasses(limit, botMode string) string {
	return `{"botMode":"` + botMode + `","limits":{"read":` + limit + `,"handoff":` + limit + `,"telemetry":` + limit + `}}`
}

// harness mounts /read, a personal route that reads a cache entry, and /shared, a shared route that
// reads a cache entry.
type harness struct{ *functest.Harness }

func newHarness(t testing.TB, flags string) *harness {
	t.Helper()
	h := &harness{functest.New(t)}
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
	key := h.Deps.Keys.Key("cache", "x")
	h.Mount("GET /read", func(w http.ResponseWriter, r *http.Request) error {
		ctx, g, err := h.Deps.Guests.Begin(w, r, func(ctx context.Context, pipe redis.Pipeliner, _ *session.Request) {
			h.Deps.Cache.Enqueue(ctx, pipe, key)
		})
		if err != nil {
			return err
		}
		h.Deps.Guests.Finish(ctx, w, g, nil, nil)
		w.WriteHeader(http.StatusNoContent)
		return nil
	})
	h.Mount("GET /shared", func(w http.ResponseWriter, r *http.Request) error {
		_, _, err := h.Deps.Guests.BeginAnonymous(w, r, func(ctx context.Context, pipe redis.Pipeliner) {
			h.Deps.Cache.Enqueue(ctx, pipe, key)
		})
		if err != nil {
			return err
		}
		w.WriteHeader(http.StatusNoContent)
		return nil
	})
}

// getAs sends a GET as a browser with the user agent, and with cookie unless it is empty.
func (h *harness) getAs(agent, path, cookie string, headers ...string) *functest.Result {
	h.T.Helper()
	browser := []string{"User-Agent", agent, "Accept", "*/*", "Accept-Language", "fa-AF"}
	return h.Do("GET", path, cookie, "", append(browser, headers...)...)
}
