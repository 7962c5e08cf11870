// Package telemetry owns what this service tells a collector about its own work: traces and metrics by OTLP over HTTP,
// sent while a request runs, because a function has no processor after one. It never tells anything of a guest: what can
// be said is a closed set of names, and values that are not ours do not get in. A nil Room says nothing and costs
// nothing.
package otlp

import (
	"cmp"
	"crypto/rand"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// Recorder is the telemetry of one function. Safe for concurrent use.
type Recorder struct {
	tracer    trace.Tracer
	metrics   *metrics
	processor *batchProcessor
}

const scopeName = "melmastoon.ghasi.io/bff-consumer"

// config is what this room takes from the environment.
type config struct {
	endpoint    string  // OTEL_EXPORTER_OTLP_ENDPOINT, a base URL: /v1/traces and /v1/metrics come behind it
	sampleRatio float64 // OTEL_TRACES_SAMPLER_ARG, of the traces that begin here; one that comes with a request has decided
	project     string
}

func configFromEnv() (config, error) {
	c := config{endpoint: strings.TrimRight(os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT"), "/"), sampleRatio: 1, project: os.Getenv("GOOGLE_CLOUD_PROJECT")}
	if c.endpoint == "" {
		return c, nil
	}
	if u, err := url.Parse(c.endpoint); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.User != nil || u.RawQuery != "" {
		return c, fmt.Errorf("telemetry: OTEL_EXPORTER_OTLP_ENDPOINT must be an http(s) base URL, is %q", c.endpoint)
	}
	if arg := os.Getenv("OTEL_TRACES_SAMPLER_ARG"); arg != "" {
		share, err := strconv.ParseFloat(arg, 64)
		if err != nil || !(share >= 0 && share <= 1) {
			return c, fmt.Errorf("telemetry: OTEL_TRACES_SAMPLER_ARG must be a number from 0 to 1, is %q", arg)
		}
		c.sampleRatio = share
	}
	return c, nil
}

// Open reads the environment and dials nothing. The Room is nil while OTEL_EXPORTER_OTLP_ENDPOINT is not set. function is
// the name of the entry point.
func Open(function string) (*Recorder, error) {
	c, err := configFromEnv()
	if err != nil || c.endpoint == "" {
		return nil, err
	}
	client, err := newHTTPClient(c)
	if err != nil {
		return nil, err
	}
	otel.SetErrorHandler(otel.ErrorHandlerFunc(logError))
	about := newResource(c, function)
	r := &Recorder{processor: newBatchProcessor(&collector{c.endpoint, client}, time.Now)}
	r.tracer = sdktrace.NewTracerProvider(
		sdktrace.WithResource(about),
		sdktrace.WithSampler(sdktrace.ParentBased(sdktrace.TraceIDRatioBased(c.sampleRatio))),
		sdktrace.WithSpanProcessor(r.processor),
		sdktrace.WithRawSpanLimits(sdktrace.SpanLimits{
			AttributeValueLengthLimit: 128, AttributeCountLimit: 16, EventCountLimit: 0, LinkCountLimit: 0,
		}),
	).Tracer(scopeName)
	provider := sdkmetric.NewMeterProvider(sdkmetric.WithResource(about), sdkmetric.WithReader(r.processor.reader))
	if r.metrics, err = newMetrics(provider.Meter(scopeName), r.processor.droppedSpans); err != nil {
		return nil, fmt.Errorf("telemetry: open: %w", err)
	}
	return r, nil
}

// logError is what the SDK says when something is wrong with it.
func logError(err error) { slog.Warn("telemetry: " + err.Error()) }

// newResource says who speaks. Every process is an instance of its own: two that count under one name would be added up
// wrongly.
func newResource(c config, function string) *resource.Resource {
	attrs := []attribute.KeyValue{
		attribute.String("service.name", cmp.Or(os.Getenv("K_SERVICE"), "bff-consumer")),
		attribute.String("service.namespace", "bff-consumer"),
		attribute.String("service.instance.id", rand.Text()),
		attribute.String("faas.name", function),
	}
	for key, value := range map[string]string{
		"faas.version":                os.Getenv("K_REVISION"),
		"deployment.environment.name": os.Getenv("ENVIRONMENT"),
		"cloud.region":                os.Getenv("CLOUD_REGION"),
		"gcp.project_id":              c.project, // Google's endpoint takes nothing without it
	} {
		if value != "" {
			attrs = append(attrs, attribute.String(key, value))
		}
	}
	return resource.NewSchemaless(attrs...)
}

// sharedTransport is shared by all rooms of a process: they speak to one collector.
var sharedTransport = sync.OnceValue(func() http.RoundTripper {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.Proxy = nil
	t.MaxIdleConnsPerHost = 4
	t.MaxResponseHeaderBytes = 16 << 10
	return retryTransport{t}
})

// retryTransport lets the transport send a request again on a new connection when a pooled one turns out to be dead, which
// it does by itself only where that is harmless: here it is, and an instance that was frozen has none that lives.
type retryTransport struct{ next http.RoundTripper }

func (t retryTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header["Idempotency-Key"] = []string{} // the transport's sign for it; not sent
	return t.next.RoundTrip(r)
}

// newHTTPClient follows no redirect: what is sent is for the collector alone.
func newHTTPClient(c config) (*http.Client, error) {
	client := &http.Client{
		Transport:     sharedTransport(),
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	if u, err := url.Parse(c.endpoint); err == nil && strings.HasSuffix(u.Hostname(), ".googleapis.com") {
		if u.Scheme != "https" {
			return nil, fmt.Errorf("telemetry: a token would be sent in clear to %s", c.endpoint)
		}
		client.Transport = authTransport{client.Transport, c.project}
	}
	return client, nil
}
