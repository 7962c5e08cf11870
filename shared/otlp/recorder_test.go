package otlp

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestRecorderOpen_DisabledWithoutEndpoint(t *testing.T) {
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "")
	if r, err := Open("Search"); r != nil || err != nil {
		t.Fatalf("%v, %v", r, err)
	}
	ctx := t.Context()
	for what, begin := range map[string]func() bool{
		"redis": func() bool { got, part := StartRedis(ctx, "get", 0); part.End(""); return got == ctx && part == nil },
		"postgres": func() bool {
			got, part := StartPostgres(ctx, "SELECT 1", 0)
			part.End("away")
			return got == ctx && part == nil
		},
		"upstream": func() bool { got, part := StartUpstream(ctx, "theme"); part.End(""); return got == ctx && part == nil },
		"publish": func() bool {
			got, part := StartPublish(ctx, "topic", 3)
			part.End("")
			return got == ctx && part == nil
		},
	} {
		if !begin() {
			t.Errorf("%s is measured", what)
		}
	}
	if n := testing.AllocsPerRun(100, func() {
		_, part := StartRedis(ctx, "get", 0)
		part.End("")
		FromContext(ctx).RecordUpstreamCall(ctx, UpstreamCall{Service: "theme"})
	}); n != 0 {
		t.Errorf("%v allocations for nothing", n)
	}
}

func TestRecorderOpen_RejectsInvalidSettings(t *testing.T) {
	for _, c := range []struct{ endpoint, share, says string }{
		{"collector:4318", "", "OTEL_EXPORTER_OTLP_ENDPOINT"},
		{"https://me:secret@collector", "", "OTEL_EXPORTER_OTLP_ENDPOINT"},
		{"https://collector?key=1", "", "OTEL_EXPORTER_OTLP_ENDPOINT"},
		{"http://collector:4318", "1.01", "OTEL_TRACES_SAMPLER_ARG"},
		{"http://collector:4318", "NaN", "OTEL_TRACES_SAMPLER_ARG"},
		{"http://collector:4318", "all", "OTEL_TRACES_SAMPLER_ARG"},
		{"http://telemetry.googleapis.com", "", "in clear"},
	} {
		t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", c.endpoint)
		t.Setenv("OTEL_TRACES_SAMPLER_ARG", c.share)
		if _, err := Open("Search"); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%q and %q: %v", c.endpoint, c.share, err)
		}
	}
}

func TestRetryTransport_ResendsOnDeadConnection(t *testing.T) {
	var mu sync.Mutex
	known, taken := map[string]bool{}, 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		mu.Lock()
		defer mu.Unlock()
		if known[r.RemoteAddr] { // the second request of a connection finds it dead
			conn, _, err := http.NewResponseController(w).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			conn.Close()
			return
		}
		known[r.RemoteAddr] = true
		taken++
	}))
	defer server.Close()
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", server.URL)
	r, err := Open("Search")
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		_, q := r.StartRequest(t.Context(), "GET", "/x", "", time.Now())
		q.End(RequestOutcome{Status: 200}, time.Now())
		r.Close(t.Context())
	}
	mu.Lock()
	defer mu.Unlock()
	if taken != 6 || r.processor.droppedSpans() != 0 {
		t.Errorf("%d of 6 requests arrived, %d spans lost", taken, r.processor.droppedSpans())
	}
}

func TestSummarizeSQL_KeepsOnlyVerbAndTable(t *testing.T) {
	for sql, want := range map[string]string{
		"\n\t\tSELECT count(*)\n FROM bff_consumer.outbox\n WHERE x = 'secret'": "SELECT outbox",
		"insert into bff_consumer.handoff_replay_log (a) VALUES ($1)":           "INSERT handoff_replay_log",
		"begin": "BEGIN ", "SELECT 1": "SELECT ", "secret": "OTHER ", "": "OTHER ",
		"WITH a AS (SELECT 1 FROM bff_consumer.inbox) SELECT": "WITH inbox",
		"DELETE FROM bff_consumer.outbox":                     "DELETE outbox",
	} {
		if verb, table := summarizeSQL(sql); verb+" "+table != want {
			t.Errorf("%q: %s %s", sql, verb, table)
		}
	}
}
