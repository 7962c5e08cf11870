package otlp

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/metric"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	metricsservice "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	traceservice "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/protobuf/proto"
)

// newCollectorServer is a collector that keeps the last body and answers as it is told.
func newCollectorServer(t *testing.T) (server *httptest.Server, last *[]byte, answer *[]byte) {
	t.Helper()
	last, answer = new([]byte), new([]byte)
	server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		*last, _ = io.ReadAll(r.Body)
		if r.Header.Get("Content-Type") != "application/x-protobuf" {
			t.Errorf("content type %q", r.Header.Get("Content-Type"))
		}
		w.Write(*answer)
	}))
	t.Cleanup(server.Close)
	return server, last, answer
}

// decodeProto decodes what was sent. It fails on a field that OTLP does not have.
func decodeProto(t *testing.T, body []byte, into proto.Message) proto.Message {
	t.Helper()
	if err := proto.Unmarshal(body, into); err != nil {
		t.Fatal(err)
	}
	if again, _ := proto.Marshal(into); len(body) == 0 || len(again) > len(body)+8 {
		t.Fatalf("%d bytes became %d", len(body), len(again))
	}
	return into
}

// sampleData is a request with everything that our spans and metrics can have.
func sampleData(t *testing.T) ([]sdktrace.ReadOnlySpan, *metricdata.ResourceMetrics) {
	t.Helper()
	r, to, clock := newTestRecorder(t)
	about := resource.NewSchemaless(attribute.String("service.name", "search"), attribute.String("empty", ""))
	r.tracer = sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(r.processor), sdktrace.WithResource(about)).Tracer(scopeName)
	reader := sdkmetric.NewManualReader()
	meter := sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader), sdkmetric.WithResource(about)).Meter(scopeName, metric.WithInstrumentationVersion("3"))
	var err error
	if r.metrics, err = newMetrics(meter, func() int64 { return 7 }); err != nil {
		t.Fatal(err)
	}
	for _, parent := range []string{"", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"} {
		ctx, q := r.StartRequest(t.Context(), "POST", "/search", parent, *clock)
		q.AddPhase("begin", *clock, clock.Add(time.Millisecond))
		_, p := StartRedis(ctx, "PIPELINE", 8)
		p.End("")
		_, p = StartPublish(ctx, "a.topic", 3)
		p.End("away")
		r.RecordUpstreamCall(ctx, UpstreamCall{Service: "theme", Duration: time.Second, BreakerState: 2})
		r.RecordUpstreamCall(ctx, UpstreamCall{Service: "pricing", ErrorType: "hung"})
		r.AddPublished(ctx, 1<<40)
		r.RecordJobSuccess(ctx, *clock)
		r.RecordBacklog(ctx, OutboxBacklog{Depth: -1, OldestAge: time.Minute})
		q.End(RequestOutcome{Status: 503, CacheState: "HIT", LimitPolicy: "burst", BotVerdict: "suspect", Degraded: true}, clock.Add(30*time.Millisecond))
	}
	r.Close(t.Context())
	if len(to.spans) != 1 || len(to.spans[0]) != 8 {
		t.Fatalf("%d batches", len(to.spans))
	}
	var now metricdata.ResourceMetrics
	if err := reader.Collect(t.Context(), &now); err != nil {
		t.Fatal(err)
	}
	return to.spans[0], &now
}

func TestEncodeSpans_MatchesOTelExporter(t *testing.T) {
	server, last, _ := newCollectorServer(t)
	spans, _ := sampleData(t)
	if err := (&collector{server.URL, server.Client()}).ExportSpans(t.Context(), spans); err != nil {
		t.Fatal(err)
	}
	ours := decodeProto(t, *last, new(traceservice.ExportTraceServiceRequest))
	library, err := otlptracehttp.New(t.Context(), otlptracehttp.WithEndpointURL(server.URL+"/v1/traces"))
	if err != nil {
		t.Fatal(err)
	}
	if err := library.ExportSpans(t.Context(), spans); err != nil {
		t.Fatal(err)
	}
	if theirs := decodeProto(t, *last, new(traceservice.ExportTraceServiceRequest)); !proto.Equal(ours, theirs) {
		t.Errorf("ours:\n%v\ntheirs:\n%v", ours, theirs)
	}
}

func TestEncodeMetrics_MatchesOTelExporter(t *testing.T) {
	server, last, _ := newCollectorServer(t)
	_, now := sampleData(t)
	if err := (&collector{server.URL, server.Client()}).Export(t.Context(), now); err != nil {
		t.Fatal(err)
	}
	ours := decodeProto(t, *last, new(metricsservice.ExportMetricsServiceRequest))
	library, err := otlpmetrichttp.New(t.Context(), otlpmetrichttp.WithEndpointURL(server.URL+"/v1/metrics"))
	if err != nil {
		t.Fatal(err)
	}
	if err := library.Export(t.Context(), now); err != nil {
		t.Fatal(err)
	}
	if theirs := decodeProto(t, *last, new(metricsservice.ExportMetricsServiceRequest)); !proto.Equal(ours, theirs) {
		t.Errorf("ours:\n%v\ntheirs:\n%v", ours, theirs)
	}
	if !strings.Contains(string(*last), "bff.outbox.depth") {
		t.Error("a metric is missing")
	}
}

func TestEncodeMetrics_FailsForUnsupportedType(t *testing.T) {
	server, last, _ := newCollectorServer(t)
	now := &metricdata.ResourceMetrics{ScopeMetrics: []metricdata.ScopeMetrics{{Metrics: []metricdata.Metrics{
		{Name: "odd", Data: metricdata.Summary{}},
	}}}}
	if err := (&collector{server.URL, server.Client()}).Export(t.Context(), now); err == nil || !strings.Contains(err.Error(), "odd") || *last != nil {
		t.Errorf("%v, sent %q", err, *last)
	}
}

func TestCollector_LogsPartialSuccess(t *testing.T) {
	var said bytes.Buffer
	before := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(&said, nil)))
	defer slog.SetDefault(before)
	server, _, answer := newCollectorServer(t)
	spans, _ := sampleData(t)
	c := &collector{server.URL, server.Client()}
	for _, partial := range []*traceservice.ExportTracePartialSuccess{nil, {}, {RejectedSpans: 3, ErrorMessage: "too old"}} {
		*answer, _ = proto.Marshal(&traceservice.ExportTraceServiceResponse{PartialSuccess: partial})
		said.Reset()
		if err := c.ExportSpans(t.Context(), spans); err != nil {
			t.Errorf("%v: %v", partial, err)
		}
		if want := partial.GetRejectedSpans() == 3; want != strings.Contains(said.String(), "rejected 3 items of /v1/traces: too old") {
			t.Errorf("%v: said %q", partial, said.String())
		}
	}
	for _, junk := range []string{"\x0a", "\x0a\x05\x08", "<html>", "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", "\x0a\x02\x08\xff"} {
		if n, why := partialSuccess([]byte(junk)); n != 0 {
			t.Errorf("%q refuses %d: %s", junk, n, why)
		}
	}
}

func TestCollector_FailsWhenExportIsRejected(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) }))
	defer server.Close()
	spans, now := sampleData(t)
	gone, leave := context.WithCancel(t.Context())
	leave()
	c := &collector{server.URL, server.Client()}
	for name, err := range map[string]error{
		"spans": c.ExportSpans(t.Context(), spans), "metrics": c.Export(t.Context(), now), "nobody waits": c.ExportSpans(gone, spans),
	} {
		if err == nil {
			t.Errorf("%s: taken", name)
		}
	}
	if err := (&collector{":", server.Client()}).ExportSpans(t.Context(), spans); err == nil {
		t.Error("sent to nowhere")
	}
}
