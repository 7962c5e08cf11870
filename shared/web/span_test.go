package web

import (
	"bytes"
	"encoding/hex"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"melmastoon.ghasi.io/bff-consumer/shared/otlp"
	"melmastoon.ghasi.io/bff-consumer/shared/testkit/otlptest"
)

func TestSpan_JoinsCallerTraceAndMatchesLog(t *testing.T) {
	c := otlptest.Open(t)
	var sent string
	f, l := newLoggedFunction(t, "POST /v1/hotels/{propertyId}", func(w http.ResponseWriter, r *http.Request) error {
		call := FromContext(r.Context())
		call.Phase("find")()
		call.AddLogField("cache", "miss")
		call.AddLogField("bot", "suspect")
		sent = call.Traceparent
		_, part := otlp.StartUpstream(r.Context(), "theme")
		part.End("timeout")
		return okHandler(w, r)
	})
	r := httptest.NewRequest("POST", "/v1/hotels/ppt_01", nil)
	r.Header.Set("Traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")
	r.Header.Set("Tracestate", "canary=1")
	w := httptest.NewRecorder()
	f.ServeHTTP(w, r)
	f.Flush(t.Context())

	s := c.Span(t, "POST /v1/hotels/{propertyId}")
	if hex.EncodeToString(s.TraceId) != "4bf92f3577b34da6a3ce929d0e0e4736" || hex.EncodeToString(s.ParentSpanId) != "00f067aa0ba902b7" {
		t.Errorf("trace %x, parent %x", s.TraceId, s.ParentSpanId)
	}
	span := hex.EncodeToString(s.SpanId)
	if want := "00-4bf92f3577b34da6a3ce929d0e0e4736-" + span + "-01"; sent != want {
		t.Errorf("upstreams are told %s, not %s", sent, want)
	}
	record := l.only(t)
	if record["logging.googleapis.com/spanId"] != span || record["logging.googleapis.com/trace_sampled"] != true {
		t.Errorf("record %v, span %s", record, span)
	}
	for name, failure := range map[string]string{"find": "", "theme": "timeout"} {
		if part := c.Span(t, name); hex.EncodeToString(part.ParentSpanId) != span || otlptest.Attribute(part, "error.type") != failure {
			t.Errorf("%s is %v", name, part)
		}
	}
	for name, attributes := range map[string][]string{
		"http.server.request.duration": {"http.route=/v1/hotels/{propertyId}", "http.request.method=POST", "http.response.status_code=200", "bff.cache.state=miss"},
		"bff.bot.verdicts":             {"bff.bot.verdict=suspect"},
	} {
		if n := c.Metric(name, attributes...); n != 1 {
			t.Errorf("%s: %v", name, n)
		}
	}
	if got := c.Resource("faas.name"); got != "Test" {
		t.Errorf("sent by %q", got)
	}
	if !strings.Contains(w.Header().Get("Server-Timing"), "export;dur=") {
		t.Errorf("the time it took to send is hidden: %s", w.Header().Get("Server-Timing"))
	}
	if bytes.Contains(c.Raw(), []byte("canary")) {
		t.Error("the client's tracestate is told")
	}
}

func TestSpan_UnsampledCallerIsCountedNotTraced(t *testing.T) {
	c := otlptest.Open(t)
	f, l := newLoggedFunction(t, "GET /x", okHandler)
	r := httptest.NewRequest("GET", "/x", nil)
	r.Header.Set("Traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00")
	f.ServeHTTP(httptest.NewRecorder(), r)
	f.Flush(t.Context())
	record := l.only(t)
	if len(c.Spans("")) != 0 || record["logging.googleapis.com/trace_sampled"] != false ||
		record["logging.googleapis.com/trace"] != "4bf92f3577b34da6a3ce929d0e0e4736" {
		t.Errorf("%v, record %v", c.Spans(""), record)
	}
	if n := c.Metric("http.server.request.duration"); n != 1 {
		t.Errorf("counted %v times", n)
	}
}

func TestSpan_CollectorFailureDoesNotAffectResponse(t *testing.T) {
	for name, does := range map[string]func(*otlptest.Collector){
		"refuses":         func(c *otlptest.Collector) { c.SetStatus(503) },
		"sends elsewhere": func(c *otlptest.Collector) { c.SetStatus(302) },
		"hangs":           func(c *otlptest.Collector) { c.Hang() },
	} {
		t.Run(name, func(t *testing.T) {
			c := otlptest.Open(t)
			does(c)
			f := newTestFunction(t, "GET /x", okHandler)
			for range 3 {
				w := httptest.NewRecorder()
				f.ServeHTTP(w, httptest.NewRequest("GET", "/x", nil))
				if w.Code != 200 || w.Body.String() != "{}" {
					t.Errorf("%d %s", w.Code, w.Body)
				}
			}
			if n := c.Requests(); n > 2 { // spans and metrics
				t.Errorf("the collector was asked %d times", n)
			}
		})
	}
}

func TestSpan_FunctionOpensWithoutCollector(t *testing.T) {
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")
	w := httptest.NewRecorder()
	newTestFunction(t, "GET /x", okHandler).ServeHTTP(w, httptest.NewRequest("GET", "/x", nil))
	if w.Code != 200 {
		t.Errorf("%d", w.Code)
	}
}

func TestFunctionOpen_ReportsTelemetryAndWebErrorsTogether(t *testing.T) {
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "collector")
	t.Setenv("TRUSTED_HOPS", "many")
	f := New("Test", "GET /x", opened(okHandler))
	err := f.OpenWithLog(t.Context(), new(logBuffer))
	if err == nil || !strings.Contains(err.Error(), "OTEL_EXPORTER_OTLP_ENDPOINT") || !strings.Contains(err.Error(), "TRUSTED_HOPS") {
		t.Error(err)
	}
}

func BenchmarkServe_Telemetry(b *testing.B) {
	for _, c := range []struct{ name, parent string }{
		{"off", ""},
		{"counted", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00"},
		{"traced", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"},
	} {
		b.Run(c.name, func(b *testing.B) {
			if c.name != "off" {
				otlptest.Open(b)
			}
			f := newTestFunction(b, "GET /x", func(w http.ResponseWriter, r *http.Request) error {
				call := FromContext(r.Context())
				call.AddLogField("cache", "hit")
				call.Phase("begin")()
				call.Phase("finish")()
				for range 2 {
					_, part := otlp.StartRedis(r.Context(), "PIPELINE", 8)
					part.End("")
				}
				return okHandler(w, r)
			})
			f.withState(func(s *state) { s.now = time.Now })
			r := httptest.NewRequest("GET", "/x", nil)
			if c.parent != "" {
				r.Header.Set("Traceparent", c.parent)
			}
			b.ReportAllocs()
			for b.Loop() {
				f.ServeHTTP(httptest.NewRecorder(), r)
			}
		})
	}
}
