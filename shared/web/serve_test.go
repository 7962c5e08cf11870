package web

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"melmastoon.ghasi.io/bff-consumer/shared/problem"
)

func TestServe_MatchesMethodAndPath(t *testing.T) {
	t.Parallel()
	var seen string
	hotel := func(w http.ResponseWriter, r *http.Request) error {
		seen = r.PathValue("propertyId") + "|" + r.PathValue("part")
		return okHandler(w, r)
	}
	for _, c := range []struct {
		pattern, method, target string
		status                  int
		seen                    string
	}{
		{"GET /v1/facets", "GET", "/v1/facets?country=AF", 200, "|"},
		{"GET /v1/facets", "HEAD", "/v1/facets", 200, "|"},
		{"GET /v1/facets", "GET", "/v1/facets/", 404, ""},
		{"GET /v1/facets", "GET", "/v1//facets", 404, ""},
		{"GET /v1/facets", "GET", "/v1/../v1/facets", 404, ""},
		{"GET /v1/facets", "GET", "/", 404, ""},
		{"GET /v1/facets", "GET", "/v1/facets/x", 404, ""},
		{"GET /v1/facets", "POST", "/v1/facets", 405, ""},
		{"GET /v1/facets", "OPTIONS", "/v1/facets", 405, ""},
		{"POST /v1/search", "GET", "/v1/search", 405, ""},
		{"POST /v1/search", "BREW", "/v1/search", 405, ""},
		{"POST /v1/search", "GET", "/v1/nothing", 404, ""},
		{"GET /v1/hotels/{propertyId}", "GET", "/v1/hotels/ppt_1", 200, "ppt_1|"},
		{"GET /v1/hotels/{propertyId}", "GET", "/v1/hotels/", 404, ""},
		{"GET /v1/hotels/{propertyId}", "GET", "/v1/hotels", 404, ""},
		{"GET /v1/hotels/{propertyId}", "GET", "/v1/hotels/a/b", 404, ""},
		{"GET /v1/hotels/{propertyId}", "GET", "/v1/hotel/a", 404, ""},
		{"GET /v1/hotels/{propertyId}", "GET", "/v1/hotels/a%2Fb%20c", 200, "a/b c|"},
		{"GET /v1/hotels/{propertyId}/x/{part}", "GET", "/v1/hotels/a/x/b", 200, "a|b"},
		{"GET /v1/hotels/{propertyId}/x/{part}", "GET", "/v1/hotels/a/y/b", 404, ""},
		{"GET /v1/hotels/{propertyId}/x/{part}", "GET", "/v1/hotels//x/b", 404, ""},
	} {
		seen = ""
		w := httptest.NewRecorder()
		newTestFunction(t, c.pattern, hotel).ServeHTTP(w, httptest.NewRequest(c.method, c.target, nil))
		if w.Code != c.status || seen != c.seen {
			t.Errorf("%s for %s %s: %d %q, want %d %q", c.pattern, c.method, c.target, w.Code, seen, c.status, c.seen)
		}
		if w.Code == 405 && w.Header().Get("Allow") != map[string]string{"GET": "GET, HEAD", "POST": "POST"}[c.pattern[:strings.Index(c.pattern, " ")]] {
			t.Errorf("%s allows %q", c.pattern, w.Header().Get("Allow"))
		}
		if w.Code >= 400 {
			readProblem(t, w)
		}
	}
}

func TestServe_ProblemCarriesRequestAndTraceID(t *testing.T) {
	t.Parallel()
	f := newTestFunction(t, "GET /v1/hotels/{id}", func(http.ResponseWriter, *http.Request) error {
		return fmt.Errorf("detail: %w", problem.New(problem.ResourceNotFound, "No such hotel.", errors.New("db 10.0.0.3")))
	})
	r := httptest.NewRequest("GET", "/v1/hotels/%22x%22?secret=1", nil)
	r.Header.Set("X-Request-Id", "01ARZ3NDEKTSV4RRFFQ69G5FAV")
	r.Header.Set("Traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")
	w := httptest.NewRecorder()
	f.ServeHTTP(w, r)
	p := readProblem(t, w)
	if p.Instance != "/v1/hotels/%22x%22" || p.RequestID != "01ARZ3NDEKTSV4RRFFQ69G5FAV" || p.TraceID != "4bf92f3577b34da6a3ce929d0e0e4736" || p.Detail != "No such hotel." {
		t.Errorf("%+v", p)
	}
	if w.Header().Get("X-Request-Id") != p.RequestID || w.Header().Get("Server-Timing") == "" {
		t.Errorf("headers %v", w.Header())
	}
}

func TestServe_PanicIsInternalProblemWithLoggedStack(t *testing.T) {
	t.Parallel()
	f, l := newLoggedFunction(t, "GET /x", func(w http.ResponseWriter, _ *http.Request) error {
		w.Header().Set("Set-Cookie", "gms_id=x")
		w.Header().Set("Cache-Control", "public, max-age=15")
		panic("the secret")
	})
	w := httptest.NewRecorder()
	f.ServeHTTP(w, httptest.NewRequest("GET", "/x", nil))
	if p := readProblem(t, w); p.Code != "MELMASTOON.BFF.CONSUMER.INTERNAL" || strings.Contains(w.Body.String(), "secret") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	record := l.only(t)
	if record["severity"] != "ERROR" || record["err"] != "panic: the secret" || !strings.Contains(record["stack"].(string), "serve_test.go") {
		t.Errorf("record %v", record)
	}
}

func TestServe_PanicAfterFirstByteAbortsConnection(t *testing.T) {
	t.Parallel()
	f, l := newLoggedFunction(t, "GET /x", func(w http.ResponseWriter, _ *http.Request) error {
		_, _ = io.WriteString(w, "half")
		_ = http.NewResponseController(w).Flush()
		panic("too late")
	})
	server := httptest.NewUnstartedServer(f)
	server.Config.ErrorLog = nil
	server.Start()
	defer server.Close()
	response, err := http.Get(server.URL + "/x")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if body, err := io.ReadAll(response.Body); err == nil {
		t.Errorf("%q looks whole", body)
	}
	server.Close() // the record is written after the answer
	if record := l.only(t); record["severity"] != "ERROR" || record["err"] != "panic: too late" {
		t.Errorf("record %v", record)
	}
}

func TestServe_ErrorAfterFirstByteIsOnlyLogged(t *testing.T) {
	t.Parallel()
	f, l := newLoggedFunction(t, "GET /x", func(w http.ResponseWriter, _ *http.Request) error {
		_, _ = io.WriteString(w, "answer")
		return errors.New("afterwards")
	})
	w := httptest.NewRecorder()
	f.ServeHTTP(w, httptest.NewRequest("GET", "/x", nil))
	if w.Code != 200 || w.Body.String() != "answer" {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if record := l.only(t); record["severity"] != "ERROR" || record["err"] != "afterwards" {
		t.Errorf("record %v", record)
	}
}

func TestServe_EmptyHandlerReturns200(t *testing.T) {
	t.Parallel()
	w := httptest.NewRecorder()
	newTestFunction(t, "GET /x", func(http.ResponseWriter, *http.Request) error { return nil }).ServeHTTP(w, httptest.NewRequest("GET", "/x", nil))
	if w.Code != 200 || w.Header().Get("Server-Timing") == "" {
		t.Errorf("%d %v", w.Code, w.Header())
	}
}

func TestServe_BudgetExceededIs504(t *testing.T) {
	t.Parallel()
	f := newTestFunction(t, "GET /x", func(_ http.ResponseWriter, r *http.Request) error {
		<-r.Context().Done()
		return fmt.Errorf("search: %w", r.Context().Err())
	}).withState(func(s *state) { s.budget = 1 })
	w := httptest.NewRecorder()
	f.ServeHTTP(w, httptest.NewRequest("GET", "/x", nil))
	if p := readProblem(t, w); w.Code != 504 || p.Code != "MELMASTOON.BFF.CONSUMER.UPSTREAM_BUDGET_EXCEEDED" || w.Header().Get("Retry-After") != "1" {
		t.Errorf("%d %s %v", w.Code, p.Code, w.Header())
	}
}

func TestServe_DefaultBudgetIs2500ms(t *testing.T) {
	t.Parallel()
	newTestFunction(t, "GET /x", func(_ http.ResponseWriter, r *http.Request) error {
		if deadline, ok := r.Context().Deadline(); !ok || time.Until(deadline) > 2500*time.Millisecond || time.Until(deadline) < time.Second {
			t.Errorf("deadline %s, %v", deadline, ok)
		}
		return nil
	}).ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/x", nil))
}

func TestServe_ClientDisconnectIsLoggedAs499(t *testing.T) {
	t.Parallel()
	f, l := newLoggedFunction(t, "GET /x", func(_ http.ResponseWriter, r *http.Request) error { return r.Context().Err() })
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	f.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/x", nil).WithContext(ctx))
	if record := l.only(t); record["severity"] != "INFO" || record["httpRequest"].(map[string]any)["status"] != 499.0 {
		t.Errorf("record %v", record)
	}
}

func TestServe_LimitsHeaderSize(t *testing.T) {
	t.Parallel()
	f := newTestFunction(t, "GET /x", okHandler)
	for _, c := range []struct {
		size, status int
	}{{MaxHeader - 200, 200}, {MaxHeader, 413}, {1 << 20, 413}} {
		r := httptest.NewRequest("GET", "/x", nil)
		r.Header.Set("Cookie", strings.Repeat("a", c.size))
		w := httptest.NewRecorder()
		f.ServeHTTP(w, r)
		if w.Code != c.status {
			t.Errorf("%d bytes: %d, want %d", c.size, w.Code, c.status)
		}
	}
	w := httptest.NewRecorder()
	f.ServeHTTP(w, httptest.NewRequest("GET", "/x?q="+strings.Repeat("a", MaxHeader), nil))
	if w.Code != 413 {
		t.Errorf("a long query: %d", w.Code)
	}
}

func TestServe_LimitsBodySize(t *testing.T) {
	t.Parallel()
	f := newTestFunction(t, "POST /x", func(_ http.ResponseWriter, r *http.Request) error {
		n, err := io.Copy(io.Discard, r.Body)
		if n != MaxBody || err == nil {
			t.Errorf("%d bytes, %v", n, err)
		}
		return nil
	})
	f.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("POST", "/x", bytes.NewReader(make([]byte, MaxBody+1))))
}

func TestServe_SlowBodyEndsWithBudget(t *testing.T) {
	t.Parallel()
	f := newTestFunction(t, "POST /x", func(_ http.ResponseWriter, r *http.Request) error {
		return Decode(r, new(query))
	}).withState(func(s *state) { s.budget = 50 * time.Millisecond })
	server := httptest.NewServer(f)
	defer server.Close()
	connection, err := net.Dial("tcp", server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close()
	// A body of 100 bytes is announced, one comes; the answer must come all the same.
	fmt.Fprintf(connection, "POST /x HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{")
	answer, err := io.ReadAll(connection)
	if err != nil || !bytes.HasPrefix(answer, []byte("HTTP/1.1 400 ")) || !bytes.Contains(answer, []byte(`"incomplete"`)) {
		t.Errorf("%v: %s", err, answer)
	}
}

func TestServe_ReadDeadlineIsResetBetweenRequests(t *testing.T) {
	t.Parallel()
	f := newTestFunction(t, "POST /x", func(w http.ResponseWriter, r *http.Request) error {
		soon, cancel := context.WithTimeout(r.Context(), 10*time.Millisecond)
		defer cancel()
		if err := Decode(r.WithContext(soon), new(query)); err != nil {
			return err
		}
		// A read deadline left behind would look like a client that hung up.
		if <-r.Context().Done(); !errors.Is(r.Context().Err(), context.DeadlineExceeded) {
			t.Errorf("ended by %v", r.Context().Err())
		}
		return okHandler(w, r)
	}).withState(func(s *state) { s.budget = 100 * time.Millisecond })
	server := httptest.NewServer(f)
	defer server.Close()
	for range 3 {
		response, err := http.Post(server.URL+"/x", "application/json", strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, response.Body)
		response.Body.Close()
		if response.StatusCode != 200 {
			t.Errorf("status %d", response.StatusCode)
		}
	}
}

func TestServe_UnopenedFunctionIsInternalProblem(t *testing.T) {
	t.Parallel()
	f := &Function{Name: "Closed", Pattern: "GET /x", route: parsePattern("GET /x")}
	saved := closedState.log
	closedState.log = newLogHandler(new(logBuffer), Config{})
	defer func() { closedState.log = saved }()
	w := httptest.NewRecorder()
	f.ServeHTTP(w, httptest.NewRequest("GET", "/x", nil))
	if readProblem(t, w); w.Code != 500 {
		t.Errorf("status %d", w.Code)
	}
}

// discardWriter is a response writer that costs nothing, so that the benchmark measures the
// pipeline.
type discardWriter struct{ header http.Header }

func (d discardWriter) Header() http.Header         { return d.header }
func (d discardWriter) Write(b []byte) (int, error) { return len(b), nil }
func (d discardWriter) WriteHeader(int)             {}

func BenchmarkServe(b *testing.B) {
	body := []byte(`{}`)
	f := newTestFunction(b, "GET "+BasePath+"/facets", func(w http.ResponseWriter, r *http.Request) error {
		c := FromContext(r.Context())
		stop := c.Phase("cache")
		stop()
		c.AddLogField("cache", "HIT")
		_, err := w.Write(body)
		return err
	})
	if err := f.OpenWithLog(b.Context(), io.Discard); err != nil {
		b.Fatal(err)
	}
	r := httptest.NewRequest("GET", BasePath+"/facets?country=AF", nil)
	for name, value := range map[string]string{
		"User-Agent": "Mozilla/5.0 (Linux; Android 14) AppleWebKit/537.36", "Accept": "application/json", "Accept-Language": "ps-AF,fa;q=0.8",
		"Accept-Encoding": "gzip, br", "Cookie": "gms_id=gms_01ARZ3NDEKTSV4RRFFQ69G5FAV", "X-Forwarded-For": "203.0.113.9, 10.0.0.1",
		"Traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
	} {
		r.Header.Set(name, value)
	}
	w := discardWriter{http.Header{}}
	b.ReportAllocs()
	for b.Loop() {
		clear(w.header)
		f.ServeHTTP(w, r)
	}
}

func TestFunctionServeHTTP_RejectsRequestsAfterDrain(t *testing.T) {
	t.Parallel()
	f := newTestFunction(t, "GET /x", okHandler)
	f.requests.Drain(0)
	w := httptest.NewRecorder()
	f.ServeHTTP(w, httptest.NewRequest("GET", "/x", nil))
	if p := readProblem(t, w); w.Code != 503 || p.Code != problem.UpstreamUnavailable.PublicCode() || !w.Flushed {
		t.Errorf("status %d, code %s, flushed %v; want 503, %s, flushed", w.Code, p.Code, w.Flushed, problem.UpstreamUnavailable.PublicCode())
	}
	if got := w.Header().Get("Connection"); got != "close" {
		t.Errorf("Connection is %q, want close", got)
	}
}
