package otlp

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/instrumentation"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// protoBuffer is a Protocol Buffers message that grows. The library's exporters bring gRPC into every program, for stubs that OTLP over
// HTTP does not call; of OTLP we need a dozen messages, whose fields never change their numbers. A field of its zero value is left out.
type protoBuffer []byte

func (m *protoBuffer) tag(field, wire uint64) { *m = binary.AppendUvarint(*m, field<<3|wire) }

func (m *protoBuffer) varint(field, v uint64) {
	if v != 0 {
		m.tag(field, 0)
		*m = binary.AppendUvarint(*m, v)
	}
}

// fixed64 also writes zero: a number that was measured is never left out.
func (m *protoBuffer) fixed64(field, v uint64) {
	m.tag(field, 1)
	*m = binary.LittleEndian.AppendUint64(*m, v)
}

func (m *protoBuffer) double(field uint64, v float64) { m.fixed64(field, math.Float64bits(v)) }

func (m *protoBuffer) time(field uint64, at time.Time) {
	if ns := at.UnixNano(); ns > 0 {
		m.fixed64(field, uint64(ns))
	}
}

func (m *protoBuffer) text(field uint64, s string) {
	if s != "" {
		m.bytes(field, []byte(s))
	}
}

// bytes writes a value of any length, empty ones too.
func (m *protoBuffer) bytes(field uint64, v []byte) {
	m.tag(field, 2)
	*m = binary.AppendUvarint(*m, uint64(len(v)))
	*m = append(*m, v...)
}

// submessage writes a message within this one.
func (m *protoBuffer) submessage(field uint64, fill func(*protoBuffer)) {
	var inner protoBuffer
	fill(&inner)
	m.bytes(field, inner)
}

func (m *protoBuffer) attributes(field uint64, all []attribute.KeyValue) {
	for _, a := range all {
		m.submessage(field, func(m *protoBuffer) {
			m.text(1, string(a.Key))
			m.submessage(2, func(m *protoBuffer) { m.value(a.Value) })
		})
	}
}

// value writes the kinds that this room uses; see cleanSpan.
func (m *protoBuffer) value(v attribute.Value) {
	switch v.Type() {
	case attribute.BOOL:
		m.tag(2, 0)
		*m = binary.AppendUvarint(*m, boolToUint(v.AsBool()))
	case attribute.INT64:
		m.tag(3, 0)
		*m = binary.AppendUvarint(*m, uint64(v.AsInt64()))
	case attribute.FLOAT64:
		m.double(4, v.AsFloat64())
	default:
		m.bytes(1, []byte(v.Emit()))
	}
}

func boolToUint(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}

func (m *protoBuffer) scope(field uint64, s instrumentation.Scope) {
	m.submessage(field, func(m *protoBuffer) {
		m.text(1, s.Name)
		m.text(2, s.Version)
	})
}

// encodeSpans is an ExportTraceServiceRequest. All spans are of one process and one scope.
func encodeSpans(spans []sdktrace.ReadOnlySpan) (all protoBuffer) {
	all.submessage(1, func(m *protoBuffer) {
		m.submessage(1, func(m *protoBuffer) { m.attributes(1, spans[0].Resource().Attributes()) })
		m.submessage(2, func(m *protoBuffer) {
			m.scope(1, spans[0].InstrumentationScope())
			for _, s := range spans {
				m.submessage(2, func(m *protoBuffer) { m.span(s) })
			}
		})
	})
	return all
}

// A span says of its parent that we know whether it came from elsewhere, and that it did.
const (
	flagHasIsRemote = 0x100
	flagIsRemote    = 0x200
)

func (m *protoBuffer) span(s sdktrace.ReadOnlySpan) {
	c, parent := s.SpanContext(), s.Parent()
	trace, span := c.TraceID(), c.SpanID()
	m.bytes(1, trace[:])
	m.bytes(2, span[:])
	if parent.SpanID().IsValid() {
		of := parent.SpanID()
		m.bytes(4, of[:])
	}
	m.text(5, s.Name())
	m.varint(6, uint64(s.SpanKind())) // the same numbers
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
	m.tag(16, 5)
	*m = binary.LittleEndian.AppendUint32(*m, flags)
}

// encodeMetrics is an ExportMetricsServiceRequest. It knows the kinds of metrics that there are in this room.
func encodeMetrics(now *metricdata.ResourceMetrics) (all protoBuffer, err error) {
	all.submessage(1, func(m *protoBuffer) {
		m.submessage(1, func(m *protoBuffer) { m.attributes(1, now.Resource.Attributes()) })
		for _, of := range now.ScopeMetrics {
			m.submessage(2, func(m *protoBuffer) {
				m.scope(1, of.Scope)
				for _, one := range of.Metrics {
					m.submessage(2, func(m *protoBuffer) { err = errors.Join(err, m.metric(one)) })
				}
			})
		}
	})
	return all, err
}

func (m *protoBuffer) metric(one metricdata.Metrics) error {
	m.text(1, one.Name)
	m.text(2, one.Description)
	m.text(3, one.Unit)
	switch data := one.Data.(type) {
	case metricdata.Gauge[int64]:
		m.submessage(5, func(m *protoBuffer) { appendNumberPoints(m, data.DataPoints) })
	case metricdata.Gauge[float64]:
		m.submessage(5, func(m *protoBuffer) { appendNumberPoints(m, data.DataPoints) })
	case metricdata.Sum[int64]:
		m.submessage(7, func(m *protoBuffer) {
			appendNumberPoints(m, data.DataPoints)
			m.varint(2, temporality(data.Temporality))
			m.varint(3, boolToUint(data.IsMonotonic))
		})
	case metricdata.Histogram[float64]:
		m.submessage(9, func(m *protoBuffer) {
			for _, p := range data.DataPoints {
				m.submessage(1, func(m *protoBuffer) { m.histogram(p) })
			}
			m.varint(2, temporality(data.Temporality))
		})
	default:
		return fmt.Errorf("telemetry: %s is a %T, which nobody taught us to write", one.Name, data)
	}
	return nil
}

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

// appendNumber writes one of two fields: which, depends on what kind of number it is.
func appendNumber[N int64 | float64](m *protoBuffer, double, whole uint64, v N) {
	switch v := any(v).(type) {
	case float64:
		m.double(double, v)
	case int64:
		m.fixed64(whole, uint64(v))
	}
}

func (m *protoBuffer) histogram(p metricdata.HistogramDataPoint[float64]) {
	m.time(2, p.StartTime)
	m.time(3, p.Time)
	m.fixed64(4, p.Count)
	m.double(5, p.Sum)
	var counts, limits []byte
	for _, n := range p.BucketCounts {
		counts = binary.LittleEndian.AppendUint64(counts, n)
	}
	for _, limit := range p.Bounds {
		limits = binary.LittleEndian.AppendUint64(limits, math.Float64bits(limit))
	}
	m.bytes(6, counts)
	m.bytes(7, limits)
	appendExemplars(m, 8, p.Exemplars)
	m.attributes(9, p.Attributes.ToSlice())
	if least, ok := p.Min.Value(); ok {
		m.double(11, least)
	}
	if most, ok := p.Max.Value(); ok {
		m.double(12, most)
	}
}

// appendExemplars lead from a number to a trace.
func appendExemplars[N int64 | float64](m *protoBuffer, field uint64, all []metricdata.Exemplar[N]) {
	for _, e := range all {
		m.submessage(field, func(m *protoBuffer) {
			m.time(2, e.Time)
			appendNumber(m, 3, 6, e.Value)
			m.text(4, string(e.SpanID))
			m.text(5, string(e.TraceID))
			m.attributes(7, e.FilteredAttributes)
		})
	}
}
