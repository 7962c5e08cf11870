// Package otlptest is an OTLP collector for tests: it receives the telemetry of functions and
// returns it to the test. Only tests import it.
package otlptest

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"

	metricsservice "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	traceservice "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	metricspb "go.opentelemetry.io/proto/otlp/metrics/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// Collector accepts all traces and metrics. Safe for concurrent use.
type Collector struct {
	URL string // for OTEL_EXPORTER_OTLP_ENDPOINT

	mu       sync.Mutex
	status   int           // of responses; 0: accept and answer 200
	block    chan struct{} // not nil: responses wait until it is closed
	raw      bytes.Buffer
	spans    []*tracepb.Span
	metrics  map[series]*metricspb.Metric // newest values
	resource map[string]string            // attributes of the resource
	requests int
}

// series identifies a metric of a process; every function is a process.
type series struct{ instance, name string }

// Open starts a collector. Functions opened later in this test export to the collector, because
// Open sets OTEL_EXPORTER_OTLP_ENDPOINT; so the test cannot be parallel.
func Open(t testing.TB) *Collector {
	t.Helper()
	c := &Collector{metrics: map[series]*metricspb.Metric{}, resource: map[string]string{}}
	server := httptest.NewServer(c)
	c.URL = server.URL
	t.Cleanup(server.Close)
	t.Cleanup(c.Release)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", c.URL)
	return c
}

func (c *Collector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, "the body ended early", http.StatusBadRequest)
		return
	}
	c.mu.Lock()
	c.requests++
	block, status := c.block, c.status
	c.mu.Unlock()
	if block != nil {
		<-block
	}
	if status != 0 {
		w.WriteHeader(status)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.raw.Write(body)
	switch r.URL.Path {
	case "/v1/traces":
		var all traceservice.ExportTraceServiceRequest
		if err = proto.Unmarshal(body, &all); err == nil {
			c.addSpans(&all)
		}
	case "/v1/metrics":
		var all metricsservice.ExportMetricsServiceRequest
		if err = proto.Unmarshal(body, &all); err == nil {
			c.addMetrics(&all)
		}
	default:
		w.WriteHeader(http.StatusNotFound)
		return
	}
	if err != nil {
		w.WriteHeader(http.StatusBadRequest)
	}
}

func (c *Collector) addSpans(all *traceservice.ExportTraceServiceRequest) {
	for _, group := range all.ResourceSpans {
		c.addResource(group.Resource.GetAttributes())
		for _, scope := range group.ScopeSpans {
			c.spans = append(c.spans, scope.Spans...)
		}
	}
}

func (c *Collector) addMetrics(all *metricsservice.ExportMetricsServiceRequest) {
	for _, of := range all.ResourceMetrics {
		c.addResource(of.Resource.GetAttributes())
		instance := attribute(of.Resource.GetAttributes(), "service.instance.id")
		for _, scope := range of.ScopeMetrics {
			for _, m := range scope.Metrics {
				c.metrics[series{instance, m.Name}] = m
			}
		}
	}
}

func (c *Collector) addResource(about []*commonpb.KeyValue) {
	for _, a := range about {
		c.resource[a.Key] = formatValue(a.Value)
	}
}

// SetStatus makes the collector answer with a status and drop the data; 0 ends that.
func (c *Collector) SetStatus(status int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.status = status
}

// Hang delays responses until Release.
func (c *Collector) Hang() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.block = make(chan struct{})
}

// Release ends Hang.
func (c *Collector) Release() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.block != nil {
		close(c.block)
		c.block = nil
	}
}

// Requests returns the number of requests, including rejected ones.
func (c *Collector) Requests() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.requests
}

// Raw returns all accepted bytes. Protocol buffers contain texts unchanged.
func (c *Collector) Raw() []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	return bytes.Clone(c.raw.Bytes())
}

// Resource returns an attribute of the exporting resource.
func (c *Collector) Resource(key string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.resource[key]
}

// Spans returns the accepted spans of a name, or all spans for "".
func (c *Collector) Spans(name string) (found []*tracepb.Span) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.spans {
		if name == "" || s.Name == name {
			found = append(found, s)
		}
	}
	return found
}

// Span returns the only span of a name, or fails the test.
func (c *Collector) Span(t testing.TB, name string) *tracepb.Span {
	t.Helper()
	found := c.Spans(name)
	if len(found) != 1 {
		var names []string
		for _, s := range c.Spans("") {
			names = append(names, s.Name)
		}
		t.Fatalf("%d spans %q among %q", len(found), name, names)
	}
	return found[0]
}

// Attribute returns the value of a span's attribute as text, or "".
func Attribute(s *tracepb.Span, key string) string { return attribute(s.Attributes, key) }

func attribute(all []*commonpb.KeyValue, key string) string {
	for _, a := range all {
		if a.Key == key {
			return formatValue(a.Value)
		}
	}
	return ""
}

// Metric returns the newest value of a metric, or the count of a histogram, summed over all series
// with the given attributes, each "key=value". It returns 0 for an unknown metric.
func (c *Collector) Metric(name string, attributes ...string) (sum float64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for of, m := range c.metrics {
		if of.name != name {
			continue
		}
		for _, p := range append(m.GetSum().GetDataPoints(), m.GetGauge().GetDataPoints()...) {
			if hasAttributes(p.Attributes, attributes) {
				sum += p.GetAsDouble() + float64(p.GetAsInt())
			}
		}
		for _, p := range m.GetHistogram().GetDataPoints() {
			if hasAttributes(p.Attributes, attributes) {
				sum += float64(p.Count)
			}
		}
	}
	return sum
}

func hasAttributes(all []*commonpb.KeyValue, wanted []string) bool {
	for _, w := range wanted {
		key, value, _ := strings.Cut(w, "=")
		if attribute(all, key) != value {
			return false
		}
	}
	return true
}

func formatValue(v *commonpb.AnyValue) string {
	switch v := v.GetValue().(type) {
	case *commonpb.AnyValue_StringValue:
		return v.StringValue
	case *commonpb.AnyValue_IntValue:
		return strconv.FormatInt(v.IntValue, 10)
	case *commonpb.AnyValue_BoolValue:
		return strconv.FormatBool(v.BoolValue)
	}
	return v.String()
}

// AssertAbsent fails the test if an accepted request contains any of the texts, or if there was no
// accepted request.
func (c *Collector) AssertAbsent(t testing.TB, texts ...string) {
	t.Helper()
	raw := c.Raw()
	if len(raw) == 0 {
		t.Error("the collector has received no data")
	}
	for _, text := range texts {
		if text == "" {
			t.Error("every message has an empty text")
		} else if at := bytes.Index(raw, []byte(text)); at >= 0 {
			t.Errorf("telemetry contains %q: %q", text, raw[max(0, at-60):min(len(raw), at+len(text)+20)])
		}
	}
}
