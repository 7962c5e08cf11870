package admission_test

import (
	"context"
	"net/http"
	"os"
	"testing"
	"time"

	"melmastoon.ghasi.io/bff-consumer/shared/admission"
	"melmastoon.ghasi.io/bff-consumer/shared/cache"
	"melmastoon.ghasi.io/bff-consumer/shared/functest"
	"melmastoon.ghasi.io/bff-consumer/shared/locale"
	"melmastoon.ghasi.io/bff-consumer/shared/money"
	"melmastoon.ghasi.io/bff-consumer/shared/problem"
	"melmastoon.ghasi.io/bff-consumer/shared/ratelimit"
	"melmastoon.ghasi.io/bff-consumer/shared/setup"
	"melmastoon.ghasi.io/bff-consumer/shared/web"
)

// house is doors with nothing behind them: a personal route that reads one cache entry, one of each other class, one that
// cannot read its request, and a shared route.
type house struct {
	*functest.House
	behind int // requests that came in
}

// limited are the limits of a document, with nobody hunting bots.
func limited(limits string) string {
	return `{"botMode":"off","limits":` + limits + `}`
}

func newHouse(t testing.TB, flags string) *house {
	h := &house{House: functest.New(t)}
	e := functest.Environment(t, h.Database, h.Redis.Addr, functest.Nowhere)
	if err := os.WriteFile(e.FlagsFile, []byte(flags), 0o600); err != nil {
		t.Fatal(err)
	}
	h.API, h.Base = "", ""
	h.open(e)
	return h
}

func (h *house) open(e setup.Environment) {
	h.Open(e)
	key := func(locale.Tag, money.Currency) []string { return []string{h.Parts.Keys.Key("cache", "x")} }
	personal := func(door *admission.Door) web.Handler {
		return door.Counted(func(w http.ResponseWriter, r *http.Request) error {
			ctx, guest, err := door.Admit(w, r, key)
			if err != nil {
				return err
			}
			h.behind++
			door.Leave(ctx, w, guest, nil, nil)
			if r.URL.Path == "/absent" {
				return problem.New(problem.ResourceNotFound, "Nothing there.", nil)
			}
			w.WriteHeader(http.StatusNoContent)
			return nil
		})
	}
	h.Mount("GET /read", personal(h.Parts.Door))
	h.Mount("GET /absent", personal(h.Parts.Door))
	h.Mount("GET /handoff", personal(h.Parts.Door.For(ratelimit.Handoff)))
	h.Mount("GET /telemetry", personal(h.Parts.Door.For(ratelimit.Telemetry)))
	h.Mount("GET /unread", h.Parts.Door.Counted(func(http.ResponseWriter, *http.Request) error {
		return problem.New(problem.MalformedRequest, "Not JSON.", nil)
	}))
	h.Mount("GET /shared", func(w http.ResponseWriter, r *http.Request) error {
		ctx, look, err := h.Parts.Door.Look(w, r, h.Parts.Keys.Key("cache", "shared"))
		if err != nil {
			return err
		}
		h.behind++
		entry, _, err := h.Parts.Cache.Do(ctx, h.Parts.Keys.Key("cache", "shared"), look.Seen, cache.Recipe{TTL: time.Hour, Fill: fill})
		if err != nil {
			return err
		}
		web.Shared(w, true, false)
		return entry.WriteShared(w, r)
	})
}

func fill(context.Context) (cache.Filled, error) {
	entry, err := cache.Pack(http.StatusOK, []byte(`{}`), nil, nil)
	return cache.Filled{Entry: entry}, err
}
