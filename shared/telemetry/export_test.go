package telemetry

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

// sent is an exporter of both kinds that remembers.
type sent struct {
	spans   [][]sdktrace.ReadOnlySpan
	metrics int
	fails   error
	hold    chan struct{}
}

func (s *sent) ExportSpans(_ context.Context, spans []sdktrace.ReadOnlySpan) error {
	if s.hold != nil {
		<-s.hold
	}
	if s.fails == nil {
		s.spans = append(s.spans, spans)
	}
	return s.fails
}

func (s *sent) Export(context.Context, *metricdata.ResourceMetrics) error {
	s.metrics++
	return s.fails
}

// bench is a room whose collector is a sent, with a clock.
func bench(t *testing.T) (*Room, *sent, *time.Time) {
	t.Helper()
	clock, to := time.Date(2026, 11, 5, 10, 20, 30, 0, time.UTC), new(sent)
	r := &Room{export: newExport(to, func() time.Time { return clock })}
	r.tracer = sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(r.export)).Tracer(scope)
	var err error
	r.metrics, err = newMetrics(sdkmetric.NewMeterProvider(sdkmetric.WithReader(r.export.reader)).Meter(scope), r.export.lost)
	if err != nil {
		t.Fatal(err)
	}
	return r, to, &clock
}

// ask is one request, from its beginning to what it sends.
func (r *Room) ask(t *testing.T, job bool) (sent bool) {
	_, q := r.Begin(t.Context(), "GET", "/x", "", r.export.now())
	q.End(Outcome{Status: 200}, r.export.now())
	return q.Flush(job, time.Minute)
}

func TestWhatIsDueIsSentByTheRequestThatEnds(t *testing.T) {
	r, to, clock := bench(t)
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
		r.ask(t, c.job)
		if len(to.spans) != c.batch || to.metrics != c.metrics || len(to.spans[len(to.spans)-1]) != c.size {
			t.Errorf("after %v: %d batches, the last of %d, metrics %d", c, len(to.spans), len(to.spans[len(to.spans)-1]), to.metrics)
		}
	}
}

func TestACollectorThatFailsIsLeftInPeaceForLongerAndLonger(t *testing.T) {
	r, to, clock := bench(t)
	to.fails = errors.New("no")
	rest := shortRest
	for range 6 {
		if !r.ask(t, false) {
			t.Fatalf("nothing was sent after %v", rest)
		}
		*clock = clock.Add(rest - time.Millisecond)
		if r.ask(t, true) {
			t.Fatalf("sent before %v were over", rest)
		}
		*clock = clock.Add(time.Millisecond)
		rest = min(2*rest, longRest)
	}
	to.fails = nil
	if !r.ask(t, false) {
		t.Fatal("not sent to a collector that is back")
	}
	*clock = clock.Add(time.Second)
	if !r.ask(t, false) {
		t.Error("the rest is not forgotten")
	}
	// Six batches were lost: of the first request, and of two each after that.
	if got := r.export.lost(); got != 11 {
		t.Errorf("%d spans lost", got)
	}
}

func TestARequestDoesNotWaitForACollectorThatHangs(t *testing.T) {
	r, to, clock := bench(t)
	to.hold = make(chan struct{})
	_, q := r.Begin(t.Context(), "GET", "/x", "", *clock)
	q.End(Outcome{Status: 200}, *clock)
	if !q.Flush(false, time.Microsecond) {
		t.Fatal("nothing was sent")
	}
	*clock = clock.Add(time.Minute)
	if r.ask(t, false) { // the first is still under way
		t.Error("two exports at a time")
	}
	close(to.hold)
	r.Close(t.Context())
	if len(to.spans) != 2 || len(to.spans[0]) != 1 || len(to.spans[1]) != 1 {
		t.Errorf("sent %v", to.spans)
	}
}

func TestManySpansGoAtOnceAndTooManyAreDroppedAndCounted(t *testing.T) {
	r, to, clock := bench(t)
	r.ask(t, false)
	to.hold = make(chan struct{})
	ctx, q := r.Begin(t.Context(), "POST", "/relay", "", *clock)
	for range spansAtOnce + spansKept + 3 { // within the second
		_, p := Publish(ctx, "topic", 1)
		p.End("")
	}
	close(to.hold)
	q.End(Outcome{Status: 200}, *clock)
	r.Close(t.Context())
	if len(to.spans) != 3 || len(to.spans[1]) != spansAtOnce || len(to.spans[2]) != spansKept {
		t.Errorf("%d batches", len(to.spans))
	}
	if got := r.export.lost(); got != 4 {
		t.Errorf("%d spans lost", got)
	}
}

func TestWhatALibraryPutsOnASpanStaysHere(t *testing.T) {
	r, to, clock := bench(t)
	ctx, q := r.Begin(t.Context(), "GET", "/x", "", *clock)
	span := trace.SpanFromContext(ctx)
	span.SetAttributes(attribute.String("url.full", "canary"))
	span.RecordError(errors.New("canary"))
	span.AddLink(trace.Link{Attributes: []attribute.KeyValue{attribute.String("a", "canary")}})
	span.SetStatus(codes.Error, "canary")
	q.End(Outcome{Status: 200, Cache: "hit"}, *clock)
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

// BenchmarkExport is what one request in a second pays: spans of ten warm searches, and every fifteenth time the metrics,
// to a collector on this machine.
func BenchmarkExport(b *testing.B) {
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) }))
	defer server.Close()
	b.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", server.URL)
	r, err := Open("Search")
	if err != nil {
		b.Fatal(err)
	}
	clock := time.Now()
	r.export.now = func() time.Time { return clock }
	for b.Loop() {
		var last *Request
		for range 10 {
			ctx, q := r.Begin(b.Context(), "POST", "/search", "", clock)
			for _, name := range []string{"begin", "find", "finish"} {
				q.Phase(name, clock, clock)
			}
			for range 2 {
				_, p := Redis(ctx, "PIPELINE", 8)
				p.End("")
			}
			q.End(Outcome{Status: 200, Cache: "HIT"}, clock)
			last = q
		}
		clock = clock.Add(time.Second)
		if !last.Flush(false, time.Minute) {
			b.Fatal("nothing was sent")
		}
	}
}
