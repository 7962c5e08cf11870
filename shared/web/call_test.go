package web

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"melmastoon.ghasi.io/bff-consumer/shared/id"
)

func TestRequestID_KeepsValidClientIDs(t *testing.T) {
	t.Parallel()
	for _, given := range []string{
		"01ARZ3NDEKTSV4RRFFQ69G5FAV", "01arz3ndektsv4rrffq69g5fav", "req_01ARZ3NDEKTSV4RRFFQ69G5FAV",
		"123e4567-e89b-12d3-a456-426614174000", "123E4567-E89B-12D3-A456-426614174000",
	} {
		if got := requestID(http.Header{"X-Request-Id": {given}}, time.Now()); got != given {
			t.Errorf("%s became %s", given, got)
		}
	}
	for _, given := range []string{
		"", "x", "gms_01ARZ3NDEKTSV4RRFFQ69G5FAV", "req_", "req_123e4567-e89b-12d3-a456-426614174000", "req_req_01ARZ3NDEKTSV4RRFFQ69G5FAV",
		"01ARZ3NDEKTSV4RRFFQ69G5FA!", "123e4567-e89b-12d3-a456-42661417400g", "123e4567e89b12d3a456426614174000", "01ARZ3NDEKTSV4RRFFQ69G5FAV\r\n",
		"123e4567+e89b-12d3-a456-426614174000", "123e4567-e89b-12d3-a456-4266141740-0", strings.Repeat("a", 9000),
	} {
		if got := requestID(http.Header{"X-Request-Id": {given}}, time.Now()); !id.Valid(id.Request, got) {
			t.Errorf("%.40q became %.40q", given, got)
		}
	}
}

func TestTraceparent_JoinsValidStartsNewOtherwise(t *testing.T) {
	t.Parallel()
	const trace, span = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
	for given, sampled := range map[string]bool{
		"00-" + trace + "-" + span + "-01": true, "00-" + trace + "-" + span + "-00": false, "00-" + trace + "-" + span + "-ff": true,
		"00-" + trace + "-" + span + "-fe": false, "01-" + trace + "-" + span + "-01": true, "cc-" + trace + "-" + span + "-01-what-comes": true,
	} {
		c := &Call{}
		c.joinTrace(http.Header{"Traceparent": {given}})
		if c.TraceID != trace || c.spanID == span || c.sampled != sampled || !validTraceparent(c.Traceparent) ||
			c.Traceparent != "00-"+trace+"-"+c.spanID+map[bool]string{true: "-01", false: "-00"}[sampled] {
			t.Errorf("%s: %s", given, c.Traceparent)
		}
	}
	for _, given := range [][]string{
		nil, {""}, {"x"}, {"00-" + trace + "-" + span}, {"00-" + trace + "-" + span + "-01-more"}, {"ff-" + trace + "-" + span + "-01"},
		{"00-" + strings.ToUpper(trace) + "-" + span + "-01"}, {"00-" + strings.Repeat("0", 32) + "-" + span + "-01"}, {"0g-" + trace + "-" + span + "-01"},
		{"00-" + trace + "-" + strings.Repeat("0", 16) + "-01"}, {"00_" + trace + "-" + span + "-01"}, {"cc-" + trace + "-" + span + "-01x"},
		{"00-" + trace + "-" + span + "-01", "00-" + trace + "-" + span + "-01"}, {" 00-" + trace + "-" + span + "-01"},
	} {
		c := &Call{}
		c.joinTrace(http.Header{"Traceparent": given})
		if c.TraceID == trace || c.sampled || !validTraceparent(c.Traceparent) || c.Traceparent[3:35] != c.TraceID {
			t.Errorf("%q: %s", given, c.Traceparent)
		}
	}
	a, b := &Call{}, &Call{}
	a.joinTrace(nil)
	b.joinTrace(nil)
	if a.TraceID == b.TraceID || a.spanID == b.spanID {
		t.Error("two traces share an id")
	}
}

func TestCallPhase_SumsInServerTimingAndLog(t *testing.T) {
	t.Parallel()
	at := &clock{t: time.Date(2026, 11, 5, 10, 0, 0, 0, time.UTC)}
	f, l := newLoggedFunction(t, "GET /x", func(w http.ResponseWriter, r *http.Request) error {
		c := FromContext(r.Context())
		for _, ms := range []float64{1.25, 2.5} {
			stop := c.Phase("redis")
			at.advance(time.Duration(ms * float64(time.Millisecond)))
			stop()
		}
		stop := c.Phase("compose")
		at.advance(40 * time.Microsecond)
		stop()
		if err := okHandler(w, r); err != nil {
			return err
		}
		stop = c.Phase("write")
		at.advance(10 * time.Millisecond)
		stop()
		return nil
	})
	f.withState(func(s *state) { s.now = at.now })
	w := httptest.NewRecorder()
	f.ServeHTTP(w, httptest.NewRequest("GET", "/x", nil))
	if got := w.Header().Get("Server-Timing"); got != "redis;dur=3.8, compose;dur=0.0, total;dur=3.8" {
		t.Errorf("Server-Timing is %q", got)
	}
	record := l.only(t)
	if phases := record["phases"].(map[string]any); phases["redis"] != 3.8 || phases["compose"] != 0.0 || phases["write"] != 10.0 {
		t.Errorf("phases %v", phases)
	}
	if got := record["httpRequest"].(map[string]any)["latency"]; got != "0.014s" {
		t.Errorf("latency %v", got)
	}
}

func TestCallAddLogField_ReplacesValueAndIgnoresLateFields(t *testing.T) {
	t.Parallel()
	var c *Call
	f, l := newLoggedFunction(t, "GET /x", func(w http.ResponseWriter, r *http.Request) error {
		c = FromContext(r.Context())
		c.AddLogField("cache", "MISS")
		c.AddLogField("degraded", []string{"pricing"})
		c.AddLogField("cache", "STALE")
		return nil
	})
	f.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/x", nil))
	c.AddLogField("late", true)
	c.Phase("late")()
	record := l.only(t)
	if record["cache"] != "STALE" || record["degraded"].([]any)[0] != "pricing" || record["late"] != nil || record["phases"] != nil {
		t.Errorf("record %v", record)
	}
}

func TestCall_ConcurrentUseAfterResponse(t *testing.T) {
	t.Parallel()
	var wg sync.WaitGroup
	f := newTestFunction(t, "GET /x", func(w http.ResponseWriter, r *http.Request) error {
		for range 8 {
			wg.Go(func() {
				for range 100 {
					c := FromContext(context.WithoutCancel(r.Context()))
					stop := c.Phase("work")
					c.AddLogField("n", 1)
					stop()
				}
			})
		}
		return okHandler(w, r)
	})
	f.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/x", nil))
	wg.Wait()
}

func TestFromContext_ReturnsUsableCallWithoutRequest(t *testing.T) {
	t.Parallel()
	c := FromContext(t.Context())
	c.AddLogField("a", 1)
	c.Phase("b")()
	if c.ID != "" || c.ClientIP.IsValid() || c.Started.IsZero() {
		t.Errorf("%+v", c)
	}
}

func TestResponseWriter_CountsBytesAndFlushes(t *testing.T) {
	t.Parallel()
	f, l := newLoggedFunction(t, "GET /x", func(w http.ResponseWriter, _ *http.Request) error {
		w.WriteHeader(http.StatusEarlyHints)
		w.WriteHeader(http.StatusCreated)
		_, _ = io.WriteString(w, "12345")
		if err := http.NewResponseController(w).Flush(); err != nil {
			t.Error(err)
		}
		_, _ = io.WriteString(w, "678")
		return nil
	})
	server := httptest.NewServer(f)
	defer server.Close()
	response, err := http.Get(server.URL + "/x")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if body, err := io.ReadAll(response.Body); err != nil || string(body) != "12345678" || response.StatusCode != http.StatusCreated {
		t.Errorf("%v: %d %s", err, response.StatusCode, body)
	}
	server.Close() // the record is written after the answer
	exchange := l.only(t)["httpRequest"].(map[string]any)
	if exchange["status"] != 201.0 || exchange["responseSize"] != 8.0 {
		t.Errorf("%v", exchange)
	}
}
