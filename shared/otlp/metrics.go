package otlp

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// metrics are the instruments. Those that are no convention of OpenTelemetry's begin with "bff.". Every attribute's value
// is one of a few that we know, so the number of series is bounded by the code.
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

// durationBuckets of durations, seconds: the limits of our promises (300, 400, 500 ms …) are among them.
var durationBuckets = []float64{.001, .0025, .005, .01, .025, .05, .1, .2, .3, .4, .5, .6, .8, 1, 1.5, 2.5, 5, 10, 60, 600}

func newMetrics(m metric.Meter, lost func() int64) (*metrics, error) {
	var errs [12]error
	all := new(metrics)
	all.requests, errs[0] = m.Float64Histogram("http.server.request.duration", metric.WithUnit("s"),
		metric.WithDescription("From the request's arrival until its answer begins."), metric.WithExplicitBucketBoundaries(durationBuckets...))
	all.refusals, errs[1] = m.Int64Counter("bff.limiter.refusals", metric.WithUnit("{request}"),
		metric.WithDescription("Requests refused because their client asks too often."))
	all.verdicts, errs[2] = m.Int64Counter("bff.bot.verdicts", metric.WithUnit("{request}"),
		metric.WithDescription("What the bot detector said of requests."))
	all.alerts, errs[3] = m.Int64Counter("bff.alarms", metric.WithUnit("{request}"),
		metric.WithDescription("Requests after which somebody has to look."))
	all.upstream, errs[4] = m.Float64Histogram("http.client.request.duration", metric.WithUnit("s"),
		metric.WithDescription("Of one try at an upstream."), metric.WithExplicitBucketBoundaries(durationBuckets...))
	all.breaker, errs[5] = m.Int64Gauge("bff.upstream.breaker",
		metric.WithDescription("As the last try left it. 0: closed, 1: half open, 2: open."))
	all.outboxDepth, errs[6] = m.Int64Gauge("bff.outbox.depth", metric.WithUnit("{row}"),
		metric.WithDescription("Rows that wait, parked ones left out, at the end of the relay's last run."))
	all.outboxOldestAge, errs[7] = m.Float64Gauge("bff.outbox.oldest.age", metric.WithUnit("s"),
		metric.WithDescription("Of the oldest of them; 0: none waits."))
	all.outboxParked, errs[8] = m.Int64Gauge("bff.outbox.parked", metric.WithUnit("{row}"),
		metric.WithDescription("Rows given up until somebody looks."))
	all.outboxPublished, errs[9] = m.Int64Counter("bff.outbox.published", metric.WithUnit("{row}"),
		metric.WithDescription("Rows that the broker took."))
	all.jobLastSuccess, errs[10] = m.Float64Gauge("bff.job.last_success", metric.WithUnit("s"),
		metric.WithDescription("When the job last did what it is for, in Unix time."))
	_, errs[11] = m.Int64ObservableCounter("bff.telemetry.spans.dropped", metric.WithUnit("{span}"),
		metric.WithDescription("Spans that reached no collector."),
		metric.WithInt64Callback(func(_ context.Context, o metric.Int64Observer) error {
			o.Observe(lost())
			return nil
		}))
	return all, errors.Join(errs[:]...)
}

type recorderKey struct{}

// FromContext returns the room that measures what a context belongs to, or nil.
func FromContext(ctx context.Context) *Recorder {
	r, _ := ctx.Value(recorderKey{}).(*Recorder)
	return r
}

// UpstreamCall is one try at an upstream.
type UpstreamCall struct {
	Service      string // "pricing"
	ErrorType    string // "" when it was answered, else the reason
	Duration     time.Duration
	BreakerState int // 0: closed, 1: half open, 2: open
}

// RecordUpstreamCall counts a try.
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

// OutboxBacklog is how a run of the relay left the outbox.
type OutboxBacklog struct {
	Depth, Parked int64
	OldestAge     time.Duration
}

// RecordBacklog tells how the outbox stands.
func (r *Recorder) RecordBacklog(ctx context.Context, o OutboxBacklog) {
	if r == nil {
		return
	}
	r.metrics.outboxDepth.Record(ctx, o.Depth)
	r.metrics.outboxParked.Record(ctx, o.Parked)
	r.metrics.outboxOldestAge.Record(ctx, o.OldestAge.Seconds())
}

// AddPublished counts rows that the broker took.
func (r *Recorder) AddPublished(ctx context.Context, rows int64) {
	if r != nil {
		r.metrics.outboxPublished.Add(ctx, rows)
	}
}

// RecordJobSuccess marks a job as having done at that time what it is for. The function's name, which is the job's, is on
// everything it sends.
func (r *Recorder) RecordJobSuccess(ctx context.Context, at time.Time) {
	if r != nil {
		r.metrics.jobLastSuccess.Record(ctx, float64(at.UnixMilli())/1000)
	}
}
