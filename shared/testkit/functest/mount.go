package functest

import (
	"context"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"melmastoon.ghasi.io/bff-consumer/shared/lifecycle"
	"melmastoon.ghasi.io/bff-consumer/shared/web"
)

// Mount serves a handler through the pipeline at a pattern such as "GET /path/{id}". It replaces an
// earlier handler of the pattern. The first function of a path answers methods without a handler.
func (h *Harness) Mount(pattern string, handler web.Handler) {
	h.T.Helper()
	h.serve(NewHandler(h.T, pattern, handler, h.Log))
}

// serve adds an open function to a new mux with all functions, because a ServeMux cannot replace a
// pattern.
func (h *Harness) serve(f *web.Function) {
	h.functions[f.Pattern] = f
	h.mux = http.NewServeMux()
	paths := map[string]bool{}
	for _, p := range slices.Sorted(maps.Keys(h.functions)) {
		h.mux.Handle(p, h.functions[p])
		if path := p[strings.Index(p, "/"):]; !paths[path] {
			paths[path] = true
			h.mux.Handle(path, h.functions[p])
		}
	}
}

// ServeHTTP serves the mounted functions without the checks of Send, for benchmarks.
func (h *Harness) ServeHTTP(w http.ResponseWriter, r *http.Request) { h.mux.ServeHTTP(w, r) }

// NewHandler returns an open public function named Test that serves handler through the whole
// pipeline, without a harness.
func NewHandler(t testing.TB, pattern string, handler web.Handler, log io.Writer) *web.Function {
	t.Helper()
	f := web.New("Test", pattern, func(context.Context, *lifecycle.WarmUp) (web.Handler, error) { return handler, nil })
	if err := f.OpenWithLog(context.Background(), log); err != nil {
		t.Fatal(err)
	}
	return f
}

// Flush exports the telemetry of all mounted functions; see package otlptest.
func (h *Harness) Flush() {
	h.T.Helper()
	for _, f := range h.functions {
		f.Flush(context.Background())
	}
}
