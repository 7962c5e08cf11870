package web

import (
	"bytes"
	"context"
	"encoding/hex"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"melmastoon.ghasi.io/bff-consumer/shared/otlptest"
	"melmastoon.ghasi.io/bff-consumer/shared/telemetry"
)

func TestARequestIsTracedBelowItsCallerAndTheLogKnowsIt(t *testing.T) {
	c := otlptest.Open(t)
	var sent string
	f, l := logging(t, "POST /v1/hotels/{propertyId}", func(w http.ResponseWriter, r *http.Request) error {
		call := From(r.Context())
		call.Phase("find")()
		call.Note("cache", "miss")
		call.Note("bot", "suspect")
		sent = call.Traceparent
		_, part := telemetry.Upstream(r.Context(), "theme")
		part.End("timeout")
		return ok(w, r)
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
	record := l.one(t)
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

func TestACallerThatIsNotSampledIsNotTraced(t *testing.T) {
	c := otlptest.Open(t)
	f, l := logging(t, "GET /x", ok)
	r := httptest.NewRequest("GET", "/x", nil)
	r.Header.Set("Traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00")
	f.ServeHTTP(httptest.NewRecorder(), r)
	f.Flush(t.Context())
	record := l.one(t)
	if len(c.Spans("")) != 0 || record["logging.googleapis.com/trace_sampled"] != false ||
		record["logging.googleapis.com/trace"] != "4bf92f3577b34da6a3ce929d0e0e4736" {
		t.Errorf("%v, record %v", c.Spans(""), record)
	}
	if n := c.Metric("http.server.request.duration"); n != 1 {
		t.Errorf("counted %v times", n)
	}
}

func TestRequestsAreAnsweredWhateverTheCollectorDoes(t *testing.T) {
	for name, does := range map[string]func(*otlptest.Collector){
		"refuses":         func(c *otlptest.Collector) { c.Answer(503) },
		"sends elsewhere": func(c *otlptest.Collector) { c.Answer(302) },
		"hangs":           func(c *otlptest.Collector) { c.Hang() },
	} {
		t.Run(name, func(t *testing.T) {
			c := otlptest.Open(t)
			does(c)
			f := opened(t, "GET /x", ok)
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

func TestASecondDoorOpensThoughNoCollectorIsThere(t *testing.T) {
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")
	w := httptest.NewRecorder()
	opened(t, "GET /x", ok).ServeHTTP(w, httptest.NewRequest("GET", "/x", nil))
	if w.Code != 200 {
		t.Errorf("%d", w.Code)
	}
}

func TestWrongTelemetrySettingsAreNamedWithTheOthers(t *testing.T) {
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "collector")
	t.Setenv("TRUSTED_HOPS", "many")
	f := &Function{Name: "Test", Pattern: "GET /x", open: func(context.Context) (Handler, error) { return ok, nil }}
	err := f.OpenTo(t.Context(), new(log))
	if err == nil || !strings.Contains(err.Error(), "OTEL_EXPORTER_OTLP_ENDPOINT") || !strings.Contains(err.Error(), "TRUSTED_HOPS") {
		t.Error(err)
	}
}

func BenchmarkMeasured(b *testing.B) {
	for _, c := range []struct{ name, parent string }{
		{"off", ""},
		{"counted", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00"},
		{"traced", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"},
	} {
		b.Run(c.name, func(b *testing.B) {
			if c.name != "off" {
				otlptest.Open(b)
			}
			f := opened(b, "GET /x", func(w http.ResponseWriter, r *http.Request) error {
				call := From(r.Context())
				call.Note("cache", "hit")
				call.Phase("begin")()
				call.Phase("finish")()
				for range 2 {
					_, part := telemetry.Redis(r.Context(), "PIPELINE", 8)
					part.End("")
				}
				return ok(w, r)
			})
			f.with(func(s *state) { s.now = time.Now })
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
