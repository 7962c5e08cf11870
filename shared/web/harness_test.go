package web

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"melmastoon.ghasi.io/bff-consumer/shared/lifecycle"
	"melmastoon.ghasi.io/bff-consumer/shared/problem"
)

// opened returns an OpenFunc that succeeds with h.
func opened(h Handler) OpenFunc {
	return func(context.Context, *lifecycle.WarmUp) (Handler, error) { return h, nil }
}

// newTestFunction returns an open function that serves h and discards its log.
func newTestFunction(t testing.TB, pattern string, h Handler) *Function {
	t.Helper()
	f := New("Test", pattern, opened(h))
	if err := f.OpenWithLog(t.Context(), new(logBuffer)); err != nil {
		t.Fatal(err)
	}
	return f
}

// newLoggedFunction is newTestFunction with its log.
func newLoggedFunction(t testing.TB, pattern string, h Handler) (*Function, *logBuffer) {
	t.Helper()
	f, l := newTestFunction(t, pattern, h), new(logBuffer)
	if err := f.OpenWithLog(t.Context(), l); err != nil {
		t.Fatal(err)
	}
	return f, l
}

// withState serves under a changed state: another clock, another budget.
func (f *Function) withState(change func(*state)) *Function {
	s := *f.state.Load()
	change(&s)
	f.state.Store(&s)
	return f
}

// logBuffer collects records; each Write is one line.
type logBuffer struct {
	mu    sync.Mutex
	lines [][]byte
}

func (l *logBuffer) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, bytes.Clone(b))
	return len(b), nil
}

// only returns the only record.
func (l *logBuffer) only(t testing.TB) map[string]any {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.lines) != 1 {
		t.Fatalf("%d records: %s", len(l.lines), bytes.Join(l.lines, nil))
	}
	var record map[string]any
	if err := json.Unmarshal(l.lines[0], &record); err != nil {
		t.Fatalf("%v: %s", err, l.lines[0])
	}
	return record
}

// problemBody is the wire form of a problem, as far as tests read it.
type problemBody struct {
	Type      string               `json:"type"`
	Status    int                  `json:"status"`
	Code      string               `json:"code"`
	Detail    string               `json:"detail"`
	Instance  string               `json:"instance"`
	RequestID string               `json:"requestId"`
	TraceID   string               `json:"traceId"`
	Errors    []problem.FieldError `json:"errors"`
}

func readProblem(t testing.TB, w *httptest.ResponseRecorder) problemBody {
	t.Helper()
	if got := w.Header().Get("Content-Type"); got != "application/problem+json" {
		t.Fatalf("%d with content type %q: %.200s", w.Code, got, w.Body)
	}
	var p problemBody
	if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil {
		t.Fatalf("%v: %s", err, w.Body)
	}
	if p.Status != w.Code || w.Code < 400 || w.Header().Get("Cache-Control") != "no-store" || w.Header().Get("Set-Cookie") != "" {
		t.Fatalf("status %d, body says %d, headers %v", w.Code, p.Status, w.Header())
	}
	return p
}

func okHandler(w http.ResponseWriter, _ *http.Request) error {
	return WriteJSON(w, http.StatusOK, struct{}{})
}

// clock is a hand-set clock.
type clock struct {
	mu sync.Mutex
	t  time.Time
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.t
}

func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.t = c.t.Add(d)
}
