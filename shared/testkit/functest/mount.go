package functest

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"melmastoon.ghasi.io/bff-consumer/shared/web"
)

// Mount puts a handler behind the pipeline, at a pattern such as "GET /path/{id}". One that is there already is
// replaced. A method that nobody has at a path is refused by the first function there, as it would be alone.
func (h *Harness) Mount(pattern string, handler web.Handler) {
	h.T.Helper()
	h.handlers[pattern] = NewHandler(h.T, pattern, handler, h.Log)
	h.mux = http.NewServeMux()
	paths := map[string]bool{}
	for _, p := range slices.Sorted(maps.Keys(h.handlers)) {
		h.mux.Handle(p, h.handlers[p])
		if path := p[strings.Index(p, "/"):]; !paths[path] {
			paths[path] = true
			h.mux.Handle(path, h.handlers[p])
		}
	}
}

// ServeHTTP serves what is mounted and checks nothing: for benchmarks.
func (h *Harness) ServeHTTP(w http.ResponseWriter, r *http.Request) { h.mux.ServeHTTP(w, r) }

var functionCount atomic.Int64 // makes the names of functions under test unique in web's registry

// NewHandler is a handler behind the pipeline, without a house. It must not be called by several at once.
func NewHandler(t testing.TB, pattern string, handler web.Handler, log io.Writer) http.Handler {
	t.Helper()
	name := fmt.Sprintf("Test%d", functionCount.Add(1))
	web.Register(name, pattern, func(context.Context) (web.Handler, error) { return handler, nil })
	for _, f := range web.Functions() {
		if f.Name == name {
			if err := f.OpenWithLog(context.Background(), log); err != nil {
				t.Fatal(err)
			}
			return f
		}
	}
	t.Fatalf("functest: %s is not registered", name) // unreachable: Open registers it
	return nil
}

// Flush sends what everything that is mounted has measured; package otlptest has the collector for it.
func (h *Harness) Flush() {
	h.T.Helper()
	for _, door := range h.handlers {
		door.(*web.Function).Flush(context.Background())
	}
}
