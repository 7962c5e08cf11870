package otlp

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// metrics holds the instruments. Names outside OpenTelemetry's conventions begin with "bff.". Every
// attribute has values from a fixed set, so the code bounds the number of time series.
type metrics struct {
	requests        metric.Float64Histogram
	refusals        metric.Int64Counter
	verdicts        metric.Int64Counter
	alerts          metric.Int64Counter
	upstream        metric.Float64Histogram
	breaker         metric.Int64Gauge
	outboxDepth     metric.Int64Gauge
	outboxOldestAge metric.Float64Gauge
	outboxParked    metric.Int64Gauge
	outboxPublished metric.Int64Counter
	jobLastSuccess  metric.Float64Gauge
}

// durationBuckets are histogram bounds in seconds. They include the latency objectives (300, 400,
// 500 ms and so on).
var durationBuckets = []float64{.001, .0025, .005, .01, .025, .05, .1, .2, .3, .4, .5, .6, .8, 1, 1.5, 2.5, 5, 10, 60, 600}

func newMetrics(m metric.Meter, lost func() int64) (*metrics, error) {
	var errs [12]error
	all := new(metrics)
	all.requests, errs[0] = m.Float64Histogram("http.server.request.duration", metric.WithUnit("s"),
		metric.WithDescription("Time from the arrival of a request to the first byte of its response."), metric.WithExplicitBucketBoundaries(durationBuckets...))
	all.refusals, errs[1] = m.Int64Counter("bff.limiter.refusals", metric.WithUnit("{request}"),
		metric.WithDescription("Requests rejected by a rate limit."))
	all.verdicts, errs[2] = m.Int64Counter("bff.bot.verdicts", metric.WithUnit("{request}"),
		metric.WithDescription("Verdicts of the bot detector, per request."))
	all.alerts, errs[3] = m.Int64Counter("bff.alarms", metric.WithUnit("{request}"),
		metric.WithDescription("Requests whose log record has an alarm."))
	all.upstream, errs[4] = m.Float64Histogram("http.client.request.duration", metric.WithUnit("s"),
		metric.WithDescription("Duration of one attempt at an upstream."), metric.WithExplicitBucketBoundaries(durationBuckets...))
	all.breaker, errs[5] = m.Int64Gauge("bff.upstream.breaker",
		metric.WithDescription("State of the circuit breaker after the last attempt. 0: closed, 1: half open, 2: open."))
	all.outboxDepth, errs[6] = m.Int64Gauge("bff.outbox.depth", metric.WithUnit("{row}"),
		metric.WithDescription("Unpublished rows, without parked rows, at the end of the last relay run."))
	all.outboxOldestAge, errs[7] = m.Float64Gauge("bff.outbox.oldest.age", metric.WithUnit("s"),
		metric.WithDescription("Age of the oldest unpublished row; 0 without one."))
	all.outboxParked, errs[8] = m.Int64Gauge("bff.outbox.parked", metric.WithUnit("{row}"),
		metric.WithDescription("Rows that wait for an operator."))
	all.outboxPublished, errs[9] = m.Int64Counter("bff.outbox.published", metric.WithUnit("{row}"),
		metric.WithDescription("Rows published to Pub/Sub."))
	all.jobLastSuccess, errs[10] = m.Float64Gauge("bff.job.last_success", metric.WithUnit("s"),
		metric.WithDescription("Unix time of the last successful run of the job."))
	_, errs[11] = m.Int64ObservableCounter("bff.telemetry.spans.dropped", metric.WithUnit("{span}"),
		metric.WithDescription("Spans that did not reach the collector."),
		metric.WithInt64Callback(func(_ context.Context, o metric.Int64Observer) error {
			o.Observe(lost())
			return nil
		}))
	return all, errors.Join(errs[:]...)
}

type recorderKey struct{}

// FromContext returns the Recorder of the request that ctx belongs to, or nil if telemetry is off
// or ctx belongs to no request. CPU only.
func FromContext(ctx context.Context) *Recorder {
	r, _ := ctx.Value(recorderKey{}).(*Recorder)
	return r
}

// UpstreamCall describes one attempt at an upstream.
type UpstreamCall struct {
	Service      string // "pricing"
	ErrorType    string // reason of a failure, "" after a response
	Duration     time.Duration
	BreakerState int // 0: closed, 1: half open, 2: open
}

// RecordUpstreamCall adds one attempt to the duration histogram and sets the breaker gauge, also
// with a cancelled ctx. On a nil Recorder the call does nothing. RecordUpstreamCall only updates
// memory, under mutexes of the SDK held for a moment, and never fails; a later export sends the
// values.
func (r *Recorder) RecordUpstreamCall(ctx context.Context, t UpstreamCall) {
	if r == nil {
		return
	}
	service := attribute.String("peer.service", t.Service)
	r.metrics.breaker.Record(ctx, int64(t.BreakerState), metric.WithAttributes(service))
	if t.ErrorType == "" {
		r.metrics.upstream.Record(ctx, t.Duration.Seconds(), metric.WithAttributes(service))
		return
	}
	r.metrics.upstream.Record(ctx, t.Duration.Seconds(), metric.WithAttributes(service, attribute.String("error.type", t.ErrorType)))
}

// OutboxBacklog is the state of the outbox after a relay run: numbers of rows and the age of the
// oldest unpublished row.
type OutboxBacklog struct {
	Depth, Parked int64
	OldestAge     time.Duration
}

// RecordBacklog sets the outbox gauges. On a nil Recorder nothing happens. The call only updates
// memory, under mutexes of the SDK held for a moment, and never fails, also with a cancelled ctx.
func (r *Recorder) RecordBacklog(ctx context.Context, o OutboxBacklog) {
	if r == nil {
		return
	}
	r.metrics.outboxDepth.Record(ctx, o.Depth)
	r.metrics.outboxParked.Record(ctx, o.Parked)
	r.metrics.outboxOldestAge.Record(ctx, o.OldestAge.Seconds())
}

// AddPublished adds rows to the counter of published rows. On a nil Recorder nothing happens. The
// call only updates memory, under mutexes of the SDK held for a moment, and never fails, also with
// a cancelled ctx.
func (r *Recorder) AddPublished(ctx context.Context, rows int64) {
	if r != nil {
		r.metrics.outboxPublished.Add(ctx, rows)
	}
}

// RecordJobSuccess sets the gauge of the job's last success to at. The resource attribute faas.name
// identifies the job. On a nil Recorder nothing happens. The call only updates memory, under
// mutexes of the SDK held for a moment, and never fails, also with a cancelled ctx.
func (r *Recorder) RecordJobSuccess(ctx context.Context, at time.Time) {
	if r != nil {
		r.metrics.jobLastSuccess.Record(ctx, float64(at.UnixMilli())/1000)
	}
}
