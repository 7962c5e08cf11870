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

// Mount puts a handler behind the pipeline, at a pattern such as "GET /path/{id}". One that is there already is
// replaced. A method that nobody has at a path is refused by the first function there, as it would be alone.
func (h *Harness) Mount(pattern string, handler web.Handler) {
	h.T.Helper()
	h.serve(NewHandler(h.T, pattern, handler, h.Log))
}

// serve puts an open function into the mux. All functions are put into a new mux, because a
// ServeMux cannot replace a pattern.
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

// ServeHTTP serves what is mounted and checks nothing: for benchmarks.
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

// Flush sends what everything that is mounted has measured; package otlptest has the collector for it.
func (h *Harness) Flush() {
	h.T.Helper()
	for _, f := range h.functions {
		f.Flush(context.Background())
	}
}
