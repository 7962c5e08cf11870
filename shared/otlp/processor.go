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

// ForceFlush waits for the running export, then exports every queued span and all metrics. It
// returns the error of ctx if ctx ends first, and nil when the export fails or is suspended by the
// backoff.
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

// Shutdown is ForceFlush: the processor holds no other resource.
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
// export, which otherwise continues in the background. It returns false if nothing was due. Metrics
// of a job are due 1 s after their last export instead of 15 s, because the job's next run may be a
// day away.
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

// Close exports everything before the process ends, until ctx ends. Failures are lost. It does
// nothing on a nil Recorder.
func (r *Recorder) Close(ctx context.Context) {
	if r != nil {
		_ = r.processor.ForceFlush(ctx) // the process ends: no caller can use the error
	}
}
