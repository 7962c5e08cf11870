package telemetry

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

// message is a Protocol Buffers message that grows. The library's exporters bring gRPC into every program, for stubs that OTLP over
// HTTP does not call; of OTLP we need a dozen messages, whose fields never change their numbers. A field of its zero value is left out.
type message []byte

func (m *message) key(field, wire uint64) { *m = binary.AppendUvarint(*m, field<<3|wire) }

func (m *message) varint(field, v uint64) {
	if v != 0 {
		m.key(field, 0)
		*m = binary.AppendUvarint(*m, v)
	}
}

// fixed64 also writes zero: a number that was measured is never left out.
func (m *message) fixed64(field, v uint64) {
	m.key(field, 1)
	*m = binary.LittleEndian.AppendUint64(*m, v)
}

func (m *message) double(field uint64, v float64) { m.fixed64(field, math.Float64bits(v)) }

func (m *message) time(field uint64, at time.Time) {
	if ns := at.UnixNano(); ns > 0 {
		m.fixed64(field, uint64(ns))
	}
}

func (m *message) text(field uint64, s string) {
	if s != "" {
		m.whole(field, []byte(s))
	}
}

// whole writes a value of any length, empty ones too.
func (m *message) whole(field uint64, v []byte) {
	m.key(field, 2)
	*m = binary.AppendUvarint(*m, uint64(len(v)))
	*m = append(*m, v...)
}

// part writes a message within this one.
func (m *message) part(field uint64, fill func(*message)) {
	var inner message
	fill(&inner)
	m.whole(field, inner)
}

func (m *message) attributes(field uint64, all []attribute.KeyValue) {
	for _, a := range all {
		m.part(field, func(m *message) {
			m.text(1, string(a.Key))
			m.part(2, func(m *message) { m.value(a.Value) })
		})
	}
}

// value writes the kinds that this room uses; see cleanSpan.
func (m *message) value(v attribute.Value) {
	switch v.Type() {
	case attribute.BOOL:
		m.key(2, 0)
		*m = binary.AppendUvarint(*m, bit(v.AsBool()))
	case attribute.INT64:
		m.key(3, 0)
		*m = binary.AppendUvarint(*m, uint64(v.AsInt64()))
	case attribute.FLOAT64:
		m.double(4, v.AsFloat64())
	default:
		m.whole(1, []byte(v.Emit()))
	}
}

func bit(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}

func (m *message) scope(field uint64, s instrumentation.Scope) {
	m.part(field, func(m *message) {
		m.text(1, s.Name)
		m.text(2, s.Version)
	})
}

// spansMessage is an ExportTraceServiceRequest. All spans are of one process and one scope.
func spansMessage(spans []sdktrace.ReadOnlySpan) (all message) {
	all.part(1, func(m *message) {
		m.part(1, func(m *message) { m.attributes(1, spans[0].Resource().Attributes()) })
		m.part(2, func(m *message) {
			m.scope(1, spans[0].InstrumentationScope())
			for _, s := range spans {
				m.part(2, func(m *message) { m.span(s) })
			}
		})
	})
	return all
}

// A span says of its parent that we know whether it came from elsewhere, and that it did.
const (
	knowsRemote = 0x100
	isRemote    = 0x200
)

func (m *message) span(s sdktrace.ReadOnlySpan) {
	c, parent := s.SpanContext(), s.Parent()
	trace, span := c.TraceID(), c.SpanID()
	m.whole(1, trace[:])
	m.whole(2, span[:])
	if parent.SpanID().IsValid() {
		of := parent.SpanID()
		m.whole(4, of[:])
	}
	m.text(5, s.Name())
	m.varint(6, uint64(s.SpanKind())) // the same numbers
	m.time(7, s.StartTime())
	m.time(8, s.EndTime())
	m.attributes(9, s.Attributes())
	m.varint(10, uint64(s.DroppedAttributes()))
	m.part(15, func(m *message) {
		switch s.Status().Code {
		case codes.Ok:
			m.varint(3, 1)
		case codes.Error:
			m.varint(3, 2)
		}
	})
	flags := uint32(c.TraceFlags()) | knowsRemote
	if parent.IsRemote() {
		flags |= isRemote
	}
	m.key(16, 5)
	*m = binary.LittleEndian.AppendUint32(*m, flags)
}

// metricsMessage is an ExportMetricsServiceRequest. It knows the kinds of metrics that there are in this room.
func metricsMessage(now *metricdata.ResourceMetrics) (all message, err error) {
	all.part(1, func(m *message) {
		m.part(1, func(m *message) { m.attributes(1, now.Resource.Attributes()) })
		for _, of := range now.ScopeMetrics {
			m.part(2, func(m *message) {
				m.scope(1, of.Scope)
				for _, one := range of.Metrics {
					m.part(2, func(m *message) { err = errors.Join(err, m.metric(one)) })
				}
			})
		}
	})
	return all, err
}

func (m *message) metric(one metricdata.Metrics) error {
	m.text(1, one.Name)
	m.text(2, one.Description)
	m.text(3, one.Unit)
	switch data := one.Data.(type) {
	case metricdata.Gauge[int64]:
		m.part(5, func(m *message) { numbers(m, data.DataPoints) })
	case metricdata.Gauge[float64]:
		m.part(5, func(m *message) { numbers(m, data.DataPoints) })
	case metricdata.Sum[int64]:
		m.part(7, func(m *message) {
			numbers(m, data.DataPoints)
			m.varint(2, temporality(data.Temporality))
			m.varint(3, bit(data.IsMonotonic))
		})
	case metricdata.Histogram[float64]:
		m.part(9, func(m *message) {
			for _, p := range data.DataPoints {
				m.part(1, func(m *message) { m.histogram(p) })
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

func numbers[N int64 | float64](m *message, points []metricdata.DataPoint[N]) {
	for _, p := range points {
		m.part(1, func(m *message) {
			m.time(2, p.StartTime)
			m.time(3, p.Time)
			number(m, 4, 6, p.Value)
			exemplars(m, 5, p.Exemplars)
			m.attributes(7, p.Attributes.ToSlice())
		})
	}
}

// number writes one of two fields: which, depends on what kind of number it is.
func number[N int64 | float64](m *message, double, whole uint64, v N) {
	switch v := any(v).(type) {
	case float64:
		m.double(double, v)
	case int64:
		m.fixed64(whole, uint64(v))
	}
}

func (m *message) histogram(p metricdata.HistogramDataPoint[float64]) {
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
	m.whole(6, counts)
	m.whole(7, limits)
	exemplars(m, 8, p.Exemplars)
	m.attributes(9, p.Attributes.ToSlice())
	if least, ok := p.Min.Value(); ok {
		m.double(11, least)
	}
	if most, ok := p.Max.Value(); ok {
		m.double(12, most)
	}
}

// exemplars lead from a number to a trace.
func exemplars[N int64 | float64](m *message, field uint64, all []metricdata.Exemplar[N]) {
	for _, e := range all {
		m.part(field, func(m *message) {
			m.time(2, e.Time)
			number(m, 3, 6, e.Value)
			m.text(4, string(e.SpanID))
			m.text(5, string(e.TraceID))
			m.attributes(7, e.FilteredAttributes)
		})
	}
}
