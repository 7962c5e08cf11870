package otlp

import (
	"fmt"
	"math"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/instrumentation"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"google.golang.org/protobuf/encoding/protowire"
)

// protoBuffer appends the fields of one Protocol Buffers message. The field numbers of OTLP never
// change. Methods leave a field out if its value is zero, unless their comment says otherwise.
//
// The SDK's exporters and the generated messages are not used: they add 11 MB to a function and
// 0.7 ms to its start, because protobuf's reflection keeps the linker from removing unused methods
// (decision 30). A test compares the encoding with the SDK's exporters.
type protoBuffer []byte

func (m *protoBuffer) tag(field protowire.Number, kind protowire.Type) {
	*m = protowire.AppendTag(*m, field, kind)
}

func (m *protoBuffer) varint(field protowire.Number, v uint64) {
	if v != 0 {
		m.presentVarint(field, v)
	}
}

// presentVarint writes zero too.
func (m *protoBuffer) presentVarint(field protowire.Number, v uint64) {
	m.tag(field, protowire.VarintType)
	*m = protowire.AppendVarint(*m, v)
}

// fixed64 writes zero too: a measured zero is a value.
func (m *protoBuffer) fixed64(field protowire.Number, v uint64) {
	m.tag(field, protowire.Fixed64Type)
	*m = protowire.AppendFixed64(*m, v)
}

// double writes zero too.
func (m *protoBuffer) double(field protowire.Number, v float64) {
	m.fixed64(field, math.Float64bits(v))
}

// time writes Unix nanoseconds. It leaves out times up to 1970, the zero time included.
func (m *protoBuffer) time(field protowire.Number, t time.Time) {
	if ns := t.UnixNano(); ns > 0 {
		m.fixed64(field, uint64(ns))
	}
}

func (m *protoBuffer) text(field protowire.Number, s string) {
	if s != "" {
		m.bytes(field, []byte(s))
	}
}

// bytes writes empty values too.
func (m *protoBuffer) bytes(field protowire.Number, v []byte) {
	m.tag(field, protowire.BytesType)
	*m = protowire.AppendBytes(*m, v)
}

// submessage writes the message that fill encodes, an empty message too.
func (m *protoBuffer) submessage(field protowire.Number, fill func(*protoBuffer)) {
	var inner protoBuffer
	fill(&inner)
	m.bytes(field, inner)
}

func (m *protoBuffer) attributes(field protowire.Number, attributes []attribute.KeyValue) {
	for _, a := range attributes {
		m.submessage(field, func(m *protoBuffer) {
			m.text(1, string(a.Key))
			m.submessage(2, func(m *protoBuffer) { m.value(a.Value) })
		})
	}
}

// value writes an AnyValue. It knows the types of allowedAttributes and writes other types as text.
func (m *protoBuffer) value(v attribute.Value) {
	switch v.Type() {
	case attribute.BOOL:
		m.presentVarint(2, protowire.EncodeBool(v.AsBool()))
	case attribute.INT64:
		m.presentVarint(3, uint64(v.AsInt64()))
	case attribute.FLOAT64:
		m.double(4, v.AsFloat64())
	default:
		m.bytes(1, []byte(v.Emit()))
	}
}

func (m *protoBuffer) scope(field protowire.Number, s instrumentation.Scope) {
	m.submessage(field, func(m *protoBuffer) {
		m.text(1, s.Name)
		m.text(2, s.Version)
	})
}

// encodeSpans encodes at least one span as an ExportTraceServiceRequest. All spans must have the
// resource and the scope of the first: a process has one tracer.
func encodeSpans(spans []sdktrace.ReadOnlySpan) (request protoBuffer) {
	request.submessage(1, func(m *protoBuffer) {
		m.submessage(1, func(m *protoBuffer) { m.attributes(1, spans[0].Resource().Attributes()) })
		m.submessage(2, func(m *protoBuffer) {
			m.scope(1, spans[0].InstrumentationScope())
			for _, s := range spans {
				m.submessage(2, func(m *protoBuffer) { m.span(s) })
			}
		})
	})
	return request
}

// Bits of a span's flags: the sender knows whether the parent is remote, and the parent is remote.
const (
	flagHasIsRemote = 0x100
	flagIsRemote    = 0x200
)

func (m *protoBuffer) span(s sdktrace.ReadOnlySpan) {
	c, parent := s.SpanContext(), s.Parent()
	traceID, spanID, parentID := c.TraceID(), c.SpanID(), parent.SpanID()
	m.bytes(1, traceID[:])
	m.bytes(2, spanID[:])
	if parentID.IsValid() {
		m.bytes(4, parentID[:])
	}
	m.text(5, s.Name())
	m.varint(6, uint64(s.SpanKind())) // OTLP and the SDK number the kinds alike
	m.time(7, s.StartTime())
	m.time(8, s.EndTime())
	m.attributes(9, s.Attributes())
	m.varint(10, uint64(s.DroppedAttributes()))
	m.submessage(15, func(m *protoBuffer) {
		switch s.Status().Code {
		case codes.Ok:
			m.varint(3, 1)
		case codes.Error:
			m.varint(3, 2)
		}
	})
	flags := uint32(c.TraceFlags()) | flagHasIsRemote
	if parent.IsRemote() {
		flags |= flagIsRemote
	}
	m.tag(16, protowire.Fixed32Type)
	*m = protowire.AppendFixed32(*m, flags)
}

// encodeMetrics encodes an ExportMetricsServiceRequest. It returns an error for a type of metric
// that newMetrics does not create.
func encodeMetrics(data *metricdata.ResourceMetrics) (request protoBuffer, err error) {
	request.submessage(1, func(m *protoBuffer) {
		m.submessage(1, func(m *protoBuffer) { m.attributes(1, data.Resource.Attributes()) })
		for _, scope := range data.ScopeMetrics {
			m.submessage(2, func(m *protoBuffer) {
				m.scope(1, scope.Scope)
				for _, metric := range scope.Metrics {
					m.submessage(2, func(m *protoBuffer) {
						if metricErr := m.metric(metric); metricErr != nil {
							err = metricErr
						}
					})
				}
			})
		}
	})
	return request, err
}

func (m *protoBuffer) metric(metric metricdata.Metrics) error {
	m.text(1, metric.Name)
	m.text(2, metric.Description)
	m.text(3, metric.Unit)
	switch data := metric.Data.(type) {
	case metricdata.Gauge[int64]:
		m.submessage(5, func(m *protoBuffer) { appendNumberPoints(m, data.DataPoints) })
	case metricdata.Gauge[float64]:
		m.submessage(5, func(m *protoBuffer) { appendNumberPoints(m, data.DataPoints) })
	case metricdata.Sum[int64]:
		m.submessage(7, func(m *protoBuffer) {
			appendNumberPoints(m, data.DataPoints)
			m.varint(2, temporality(data.Temporality))
			m.varint(3, protowire.EncodeBool(data.IsMonotonic))
		})
	case metricdata.Histogram[float64]:
		m.submessage(9, func(m *protoBuffer) {
			for _, p := range data.DataPoints {
				m.submessage(1, func(m *protoBuffer) { m.histogramPoint(p) })
			}
			m.varint(2, temporality(data.Temporality))
		})
	default:
		return fmt.Errorf("otlp: metric %s has the unsupported type %T", metric.Name, data)
	}
	return nil
}

// temporality returns OTLP's AggregationTemporality: 1 for delta, 2 for cumulative.
func temporality(t metricdata.Temporality) uint64 {
	if t == metricdata.DeltaTemporality {
		return 1
	}
	return 2
}

func appendNumberPoints[N int64 | float64](m *protoBuffer, points []metricdata.DataPoint[N]) {
	for _, p := range points {
		m.submessage(1, func(m *protoBuffer) {
			m.time(2, p.StartTime)
			m.time(3, p.Time)
			appendNumber(m, 4, 6, p.Value)
			appendExemplars(m, 5, p.Exemplars)
			m.attributes(7, p.Attributes.ToSlice())
		})
	}
}

// appendNumber writes a float64 as field asDouble, an int64 as field asInt.
func appendNumber[N int64 | float64](m *protoBuffer, asDouble, asInt protowire.Number, v N) {
	switch v := any(v).(type) {
	case float64:
		m.double(asDouble, v)
	case int64:
		m.fixed64(asInt, uint64(v))
	}
}

func (m *protoBuffer) histogramPoint(p metricdata.HistogramDataPoint[float64]) {
	m.time(2, p.StartTime)
	m.time(3, p.Time)
	m.fixed64(4, p.Count)
	m.double(5, p.Sum)
	var counts, bounds []byte
	for _, n := range p.BucketCounts {
		counts = protowire.AppendFixed64(counts, n)
	}
	for _, bound := range p.Bounds {
		bounds = protowire.AppendFixed64(bounds, math.Float64bits(bound))
	}
	m.bytes(6, counts)
	m.bytes(7, bounds)
	appendExemplars(m, 8, p.Exemplars)
	m.attributes(9, p.Attributes.ToSlice())
	if v, defined := p.Min.Value(); defined {
		m.double(11, v)
	}
	if v, defined := p.Max.Value(); defined {
		m.double(12, v)
	}
}

// appendExemplars writes the links from a data point to traces.
func appendExemplars[N int64 | float64](m *protoBuffer, field protowire.Number, exemplars []metricdata.Exemplar[N]) {
	for _, e := range exemplars {
		m.submessage(field, func(m *protoBuffer) {
			m.time(2, e.Time)
			appendNumber(m, 3, 6, e.Value)
			m.text(4, string(e.SpanID))
			m.text(5, string(e.TraceID))
			m.attributes(7, e.FilteredAttributes)
		})
	}
}
