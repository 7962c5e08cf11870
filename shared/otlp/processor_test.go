package otlp

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// fakeExporter is an exporter of both kinds that remembers.
type fakeExporter struct {
	spans   [][]sdktrace.ReadOnlySpan
	metrics int
	err     error
	block   chan struct{}
}

func (s *fakeExporter) ExportSpans(_ context.Context, spans []sdktrace.ReadOnlySpan) error {
	if s.block != nil {
		<-s.block
	}
	if s.err == nil {
		s.spans = append(s.spans, spans)
	}
	return s.err
}

func (s *fakeExporter) Export(context.Context, *metricdata.ResourceMetrics) error {
	s.metrics++
	return s.err
}

// newTestRecorder is a room whose collector is a sent, with a clock.
func newTestRecorder(t *testing.T) (*Recorder, *fakeExporter, *time.Time) {
	t.Helper()
	clock, to := time.Date(2026, 11, 5, 10, 20, 30, 0, time.UTC), new(fakeExporter)
	r := &Recorder{processor: newBatchProcessor(to, func() time.Time { return clock })}
	r.tracer = sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(r.processor)).Tracer(scopeName)
	var err error
	r.metrics, err = newMetrics(sdkmetric.NewMeterProvider(sdkmetric.WithReader(r.processor.reader)).Meter(scopeName), r.processor.droppedSpans)
	if err != nil {
		t.Fatal(err)
	}
	return r, to, &clock
}

// serveRequest is one request, from its beginning to what it sends.
func (r *Recorder) serveRequest(t *testing.T, job bool) (sent bool) {
	_, q := r.StartRequest(t.Context(), "GET", "/x", "", r.processor.now())
	q.End(RequestOutcome{Status: 200}, r.processor.now())
	return q.Flush(job, time.Minute)
}

func TestBatchProcessor_ExportsWhatIsDueAtRequestEnd(t *testing.T) {
	r, to, clock := newTestRecorder(t)
	for _, c := range []struct {
		pass           time.Duration
		job            bool
		batch, metrics int // sent in all after it: batches of spans, and metrics
		size           int // of the last batch
	}{
		{0, false, 1, 1, 1},                      // an instance that nobody knows
		{999 * time.Millisecond, false, 1, 1, 1}, // less than a second after the last
		{time.Millisecond, false, 2, 1, 2},
		{13 * time.Second, false, 3, 1, 1},
		{time.Second, false, 4, 2, 1}, // metrics every 15 s
		{time.Second, true, 5, 3, 1},  // a job tells both
	} {
		*clock = clock.Add(c.pass)
		r.serveRequest(t, c.job)
		if len(to.spans) != c.batch || to.metrics != c.metrics || len(to.spans[len(to.spans)-1]) != c.size {
			t.Errorf("after %v: %d batches, the last of %d, metrics %d", c, len(to.spans), len(to.spans[len(to.spans)-1]), to.metrics)
		}
	}
}

func TestBatchProcessor_BacksOffExponentiallyAfterFailures(t *testing.T) {
	r, to, clock := newTestRecorder(t)
	to.err = errors.New("no")
	rest := minBackoff
	for range 6 {
		if !r.serveRequest(t, false) {
			t.Fatalf("nothing was sent after %v", rest)
		}
		*clock = clock.Add(rest - time.Millisecond)
		if r.serveRequest(t, true) {
			t.Fatalf("sent before %v were over", rest)
		}
		*clock = clock.Add(time.Millisecond)
		rest = min(2*rest, maxBackoff)
	}
	to.err = nil
	if !r.serveRequest(t, false) {
		t.Fatal("not sent to a collector that is back")
	}
	*clock = clock.Add(time.Second)
	if !r.serveRequest(t, false) {
		t.Error("the rest is not forgotten")
	}
	// Six batches were lost: of the first request, and of two each after that.
	if got := r.processor.droppedSpans(); got != 11 {
		t.Errorf("%d spans lost", got)
	}
}

func TestBatchProcessor_RequestDoesNotWaitForHungCollector(t *testing.T) {
	r, to, clock := newTestRecorder(t)
	to.block = make(chan struct{})
	_, q := r.StartRequest(t.Context(), "GET", "/x", "", *clock)
	q.End(RequestOutcome{Status: 200}, *clock)
	if !q.Flush(false, time.Microsecond) {
		t.Fatal("nothing was sent")
	}
	*clock = clock.Add(time.Minute)
	if r.serveRequest(t, false) { // the first is still under way
		t.Error("two exports at a time")
	}
	close(to.block)
	r.Close(t.Context())
	if len(to.spans) != 2 || len(to.spans[0]) != 1 || len(to.spans[1]) != 1 {
		t.Errorf("sent %v", to.spans)
	}
}

func TestBatchProcessor_DropsAndCountsSpansBeyondQueue(t *testing.T) {
	r, to, clock := newTestRecorder(t)
	r.serveRequest(t, false)
	to.block = make(chan struct{})
	ctx, q := r.StartRequest(t.Context(), "POST", "/relay", "", *clock)
	for range spanBatchSize + maxQueuedSpans + 3 { // within the second
		_, p := StartPublish(ctx, "topic", 1)
		p.End("")
	}
	close(to.block)
	q.End(RequestOutcome{Status: 200}, *clock)
	r.Close(t.Context())
	if len(to.spans) != 3 || len(to.spans[1]) != spanBatchSize || len(to.spans[2]) != maxQueuedSpans {
		t.Errorf("%d batches", len(to.spans))
	}
	if got := r.processor.droppedSpans(); got != 4 {
		t.Errorf("%d spans lost", got)
	}
}

func TestSanitizedSpan_RemovesForeignAttributesEventsAndLinks(t *testing.T) {
	r, to, clock := newTestRecorder(t)
	ctx, q := r.StartRequest(t.Context(), "GET", "/x", "", *clock)
	span := trace.SpanFromContext(ctx)
	span.SetAttributes(attribute.String("url.full", "canary"))
	span.RecordError(errors.New("canary"))
	span.AddLink(trace.Link{Attributes: []attribute.KeyValue{attribute.String("a", "canary")}})
	span.SetStatus(codes.Error, "canary")
	q.End(RequestOutcome{Status: 200, CacheState: "hit"}, *clock)
	q.Flush(false, time.Minute)
	s := to.spans[0][0]
	if s.Status().Description != "" || s.Status().Code != codes.Error || len(s.Events())+len(s.Links()) != 0 {
		t.Errorf("%v %v %v", s.Status(), s.Events(), s.Links())
	}
	var keys []string
	for _, a := range s.Attributes() {
		if keys = append(keys, string(a.Key)); a.Value.AsString() == "canary" {
			t.Errorf("%s is told", a.Key)
		}
	}
	if len(keys) != 5 {
		t.Errorf("attributes %q", keys)
	}
}

// BenchmarkBatchProcessor_ExportPerSecond is what one request in a second pays: spans of ten warm
// searches, and every fifteenth time the metrics, to a collector on this machine.
func BenchmarkBatchProcessor_ExportPerSecond(b *testing.B) {
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) }))
	defer server.Close()
	b.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", server.URL)
	r, err := Open("Search")
	if err != nil {
		b.Fatal(err)
	}
	clock := time.Now()
	r.processor.now = func() time.Time { return clock }
	for b.Loop() {
		var last *Request
		for range 10 {
			ctx, q := r.StartRequest(b.Context(), "POST", "/search", "", clock)
			for _, name := range []string{"begin", "find", "finish"} {
				q.AddPhase(name, clock, clock)
			}
			for range 2 {
				_, p := StartRedis(ctx, "PIPELINE", 8)
				p.End("")
			}
			q.End(RequestOutcome{Status: 200, CacheState: "HIT"}, clock)
			last = q
		}
		clock = clock.Add(time.Second)
		if !last.Flush(false, time.Minute) {
			b.Fatal("nothing was sent")
		}
	}
}
