// Package otlp owns the export of traces and metrics to a collector, by OTLP over HTTP. Exports run
// while a request runs, because a function has no CPU after its response. The package never sends
// data about a guest: names and attribute values come from a closed set. A nil Recorder records
// nothing and allocates nothing.
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

// Recorder creates the spans and metrics of one function. A nil *Recorder is valid and does
// nothing, except for StartRequest, which panics. Safe for concurrent use.
type Recorder struct {
	tracer    trace.Tracer
	metrics   *metrics
	processor *batchProcessor
}

const scopeName = "melmastoon.ghasi.io/bff-consumer"

// config holds the settings of this package from the environment.
type config struct {
	endpoint string // OTEL_EXPORTER_OTLP_ENDPOINT, the base URL of /v1/traces and /v1/metrics
	// OTEL_TRACES_SAMPLER_ARG for traces that start here; a caller's traceparent decides its own
	sampleRatio float64
	project     string
}

func configFromEnv() (config, error) {
	c := config{endpoint: strings.TrimRight(os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT"), "/"), sampleRatio: 1, project: os.Getenv("GOOGLE_CLOUD_PROJECT")}
	if c.endpoint == "" {
		return c, nil
	}
	if u, err := url.Parse(c.endpoint); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.User != nil || u.RawQuery != "" {
		return c, fmt.Errorf("otlp: OTEL_EXPORTER_OTLP_ENDPOINT must be an http(s) base URL, is %q", c.endpoint)
	}
	if arg := os.Getenv("OTEL_TRACES_SAMPLER_ARG"); arg != "" {
		share, err := strconv.ParseFloat(arg, 64)
		if err != nil || !(share >= 0 && share <= 1) {
			return c, fmt.Errorf("otlp: OTEL_TRACES_SAMPLER_ARG must be a number from 0 to 1, is %q", arg)
		}
		c.sampleRatio = share
	}
	return c, nil
}

// Open creates the Recorder of a function from the environment; it does not dial, starts no
// goroutine and replaces the process's error handler of OpenTelemetry by a log warning. function is
// the name of the entry point. Open returns (nil, nil) if OTEL_EXPORTER_OTLP_ENDPOINT is not set.
// It returns an error for the first invalid setting: an endpoint that is no http(s) base URL, a
// sampler argument outside 0 to 1, or an endpoint of googleapis.com without https. An unreachable
// collector is not an error here; see Request.Flush. All Recorders of the process share a
// connection pool.
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
		return nil, fmt.Errorf("otlp: open: %w", err)
	}
	return r, nil
}

// logError is the error handler of the OpenTelemetry SDK.
func logError(err error) { slog.Warn("otlp: " + err.Error()) }

// newResource identifies the process. service.instance.id is unique per process: the cumulative
// counters of two processes under one id would be added up wrongly.
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
		"gcp.project_id":              c.project, // required by Google's endpoint
	} {
		if value != "" {
			attrs = append(attrs, attribute.String(key, value))
		}
	}
	return resource.NewSchemaless(attrs...)
}

// sharedTransport returns the transport of all Recorders of the process: they use one collector.
var sharedTransport = sync.OnceValue(func() http.RoundTripper {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.Proxy = nil
	t.MaxIdleConnsPerHost = 4
	t.MaxResponseHeaderBytes = 16 << 10
	return retryTransport{t}
})

// retryTransport makes net/http repeat a request on a new connection if a pooled connection turns
// out to be dead. net/http does so only for idempotent requests, and an export counts as one. All
// pooled connections of an instance that the platform froze are dead.
type retryTransport struct{ next http.RoundTripper }

func (t retryTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	// marks the request as idempotent for net/http, which does not send the header
	r.Header["Idempotency-Key"] = []string{}
	return t.next.RoundTrip(r)
}

// newHTTPClient returns a client that follows no redirect, so that data reaches the configured
// collector only. For Google's endpoint it adds tokens, and returns an error without https.
func newHTTPClient(c config) (*http.Client, error) {
	client := &http.Client{
		Transport:     sharedTransport(),
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	if u, err := url.Parse(c.endpoint); err == nil && strings.HasSuffix(u.Hostname(), ".googleapis.com") {
		if u.Scheme != "https" {
			return nil, fmt.Errorf("otlp: a token would be sent in clear to %s", c.endpoint)
		}
		client.Transport = authTransport{client.Transport, c.project}
	}
	return client, nil
}
