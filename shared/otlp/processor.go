package otlp

import (
	"context"
	"sync"
	"time"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

const (
	spanInterval   = time.Second      // least time between two exports of spans
	metricInterval = 15 * time.Second // of metrics; Google accepts one point per series in 5 s
	spanBatchSize  = 512              // so many waiting spans start an export at once
	maxQueuedSpans = 4096             // further spans are dropped and counted
	exportTimeout  = 2 * time.Second
	minBackoff     = 5 * time.Second // after a failed export; doubles with each failure in a row
	maxBackoff     = time.Minute
)

// batchProcessor queues finished spans until a request exports them. It is the tracer's span
// processor. One export runs at a time; spans that end meanwhile wait for the next export. Safe for
// concurrent use.
type batchProcessor struct {
	exporter exporter
	reader   *sdkmetric.ManualReader
	now      func() time.Time

	mu            sync.Mutex
	spans         []sdktrace.ReadOnlySpan
	dropped       int64         // spans since the start
	inFlight      chan struct{} // closed when the running export ends; nil without one
	spansSentAt   time.Time     // start of the last export
	metricsSentAt time.Time
	failures      int // in a row
	backoffUntil  time.Time
}

// exporter is implemented by collector and by a fake in tests.
type exporter interface {
	ExportSpans(context.Context, []sdktrace.ReadOnlySpan) error
	Export(context.Context, *metricdata.ResourceMetrics) error
}

func newBatchProcessor(to exporter, now func() time.Time) *batchProcessor {
	return &batchProcessor{exporter: to, reader: sdkmetric.NewManualReader(), now: now}
}

// OnStart does nothing.
func (*batchProcessor) OnStart(context.Context, sdktrace.ReadWriteSpan) {}

// OnEnd queues a sampled span, or drops and counts it if 4,096 wait. The 512th waiting span starts
// an export in the background, because one relay run creates thousands of spans.
func (e *batchProcessor) OnEnd(s sdktrace.ReadOnlySpan) {
	if !s.SpanContext().IsSampled() {
		return
	}
	e.mu.Lock()
	if len(e.spans) >= maxQueuedSpans {
		e.dropped++
		e.mu.Unlock()
		return
	}
	e.spans = append(e.spans, sanitizedSpan{s})
	full := len(e.spans) >= spanBatchSize
	e.mu.Unlock()
	if full {
		e.startExport(spanInterval, metricInterval)
	}
}

// ForceFlush waits for the running export, then exports every queued span and all metrics, each
// export within 2 s. ForceFlush returns the error of ctx if ctx ends first; the export then
// continues in the background. The result is nil also when the export fails, during the backoff,
// and when a concurrent caller has just started an export.
func (e *batchProcessor) ForceFlush(ctx context.Context) error {
	e.mu.Lock()
	flying := e.inFlight
	e.mu.Unlock()
	if err := awaitExport(ctx, flying); err != nil {
		return err
	}
	return awaitExport(ctx, e.startExport(0, 0))
}

// awaitExport waits until an export has ended or ctx ends. A nil channel means no export.
func awaitExport(ctx context.Context, flying chan struct{}) error {
	if flying == nil {
		return nil
	}
	select {
	case <-flying:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Shutdown is ForceFlush: the processor holds no further resource and takes spans afterwards too.
func (e *batchProcessor) Shutdown(ctx context.Context) error { return e.ForceFlush(ctx) }

// startExport exports in the background: spans if the last export of spans is spansAge old or 512
// wait, metrics if their last export is metricsAge old. It returns a channel that the end of the
// export closes, or nil if nothing is due, during the backoff, and while another export runs.
func (e *batchProcessor) startExport(spansAge, metricsAge time.Duration) (flying chan struct{}) {
	e.mu.Lock()
	defer e.mu.Unlock()
	now := e.now()
	if e.inFlight != nil || now.Before(e.backoffUntil) {
		return nil
	}
	var spans []sdktrace.ReadOnlySpan
	if len(e.spans) > 0 && (len(e.spans) >= spanBatchSize || now.Sub(e.spansSentAt) >= spansAge) {
		spans, e.spans, e.spansSentAt = e.spans, nil, now
	}
	points := now.Sub(e.metricsSentAt) >= metricsAge
	if points {
		e.metricsSentAt = now
	}
	if spans == nil && !points {
		return nil
	}
	e.inFlight = make(chan struct{})
	go e.runExport(spans, points)
	return e.inFlight
}

// runExport sends spans and metrics at the same time, each once, within 2 s. It may outlive the
// request that started it: if the process is frozen or ends, spans are lost, and the next export
// sends the cumulative counters again.
func (e *batchProcessor) runExport(spans []sdktrace.ReadOnlySpan, points bool) {
	ctx, cancel := context.WithTimeout(context.Background(), exportTimeout)
	defer cancel()
	var all sync.WaitGroup
	var traced, measured error
	if len(spans) > 0 {
		all.Go(func() { traced = e.exporter.ExportSpans(ctx, spans) })
	}
	if points {
		all.Go(func() {
			var now metricdata.ResourceMetrics
			if measured = e.reader.Collect(ctx, &now); measured == nil {
				measured = e.exporter.Export(ctx, &now)
			}
		})
	}
	all.Wait()
	e.mu.Lock()
	defer e.mu.Unlock()
	if traced != nil {
		e.dropped += int64(len(spans))
	}
	if traced != nil || measured != nil {
		e.backoffUntil = e.now().Add(min(minBackoff<<min(e.failures, 10), maxBackoff))
		e.failures++
	} else {
		e.failures = 0
	}
	close(e.inFlight)
	e.inFlight = nil
}

// droppedSpans returns the number of spans dropped since the start.
func (e *batchProcessor) droppedSpans() int64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.dropped
}

// Flush exports the spans and metrics that are due and waits at most within for the end of the
// export, even if the request is cancelled. Later the export continues in the background, 2 s in
// all. Spans are due 1 s after their last export, or if 512 wait; metrics 15 s after, and metrics
// of a job 1 s after, because the job's next run may be a day away. q must not be nil.
//
// Flush returns false at once if nothing is due, during the backoff, and while an earlier export
// runs. Otherwise Flush returns true, also if the export fails or is late. A failed export loses
// and counts the spans, and suspends exports for 5 s, doubled with each failure in a row up to 1
// min; counters are sent again with the next export. An export sends a request for spans and a
// request for metrics at the same time, and for Google's collector fetches a token if no token is
// cached. Flush takes a mutex of the Recorder for a moment.
func (q *Request) Flush(job bool, within time.Duration) bool {
	every := metricInterval
	if job {
		every = spanInterval
	}
	flying := q.recorder.processor.startExport(spanInterval, every)
	if flying == nil {
		return false
	}
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	_ = awaitExport(ctx, flying)
	return true
}

// Close exports the queued spans and all metrics before the process ends: Close waits for a running
// export and starts a last export, each of at most 2 s, and returns when ctx ends. Failures are
// lost, and after a recent failure nothing is sent until the backoff of up to 1 min is over. It
// does nothing on a nil Recorder. The Recorder stays usable.
func (r *Recorder) Close(ctx context.Context) {
	if r != nil {
		_ = r.processor.ForceFlush(ctx) // the process ends: no caller can use the error
	}
}
