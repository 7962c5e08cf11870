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
	spanInterval   = time.Second      // at the end of a request that comes later than that after the last export
	metricInterval = 15 * time.Second // a series takes no more than a point in 5 s at Google
	spanBatchSize  = 512              // that wait are sent without waiting for the time
	maxQueuedSpans = 4096             // more are dropped, and counted
	exportTimeout  = 2 * time.Second
	minBackoff     = 5 * time.Second // after an export that failed; each in a row doubles it
	maxBackoff     = time.Minute
)

// batchProcessor keeps what was measured until a request has the time to send it. One export is under way at a time; who comes
// meanwhile leaves theirs to the next. It is the tracer's span processor.
type batchProcessor struct {
	exporter exporter
	reader   *sdkmetric.ManualReader
	now      func() time.Time

	mu            sync.Mutex
	spans         []sdktrace.ReadOnlySpan
	dropped       int64 // spans, ever
	inFlight      chan struct{}
	spansSentAt   time.Time // of the last export
	metricsSentAt time.Time
	failures      int // in a row
	backoffUntil  time.Time
}

// exporter is a collector, or what a test has for one.
type exporter interface {
	ExportSpans(context.Context, []sdktrace.ReadOnlySpan) error
	Export(context.Context, *metricdata.ResourceMetrics) error
}

func newBatchProcessor(to exporter, now func() time.Time) *batchProcessor {
	return &batchProcessor{exporter: to, reader: sdkmetric.NewManualReader(), now: now}
}

// OnStart has nothing to do.
func (*batchProcessor) OnStart(context.Context, sdktrace.ReadWriteSpan) {}

// OnEnd keeps a span. Of many that wait, the last one begins an export: a run of the relay makes them by the thousand.
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

// ForceFlush sends everything, after what is under way.
func (e *batchProcessor) ForceFlush(ctx context.Context) error {
	e.mu.Lock()
	flying := e.inFlight
	e.mu.Unlock()
	if err := awaitExport(ctx, flying); err != nil {
		return err
	}
	return awaitExport(ctx, e.startExport(0, 0))
}

// awaitExport waits for an export; nil is none.
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

// Shutdown is ForceFlush: nothing here lasts.
func (e *batchProcessor) Shutdown(ctx context.Context) error { return e.ForceFlush(ctx) }

// startExport starts an export of what is due: what was last sent so long ago, or spans that have become many. It returns nil
// when nothing is, when the collector is left in peace, and while another export is under way.
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

// runExport is one export: both requests at once, each tried one time. It may outlive the request that began it: losing it
// costs no guest anything, and counts are sent again with the next.
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

// droppedSpans is how many spans were dropped since the start.
func (e *batchProcessor) droppedSpans() int64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.dropped
}

// Flush sends what is due and waits for it, within a limit; what takes longer goes on while another request runs. It
// reports whether anything was. A job also says how it stands whenever it ends: its next run may be a day away.
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

// Close sends everything, for a process that is about to end.
func (r *Recorder) Close(ctx context.Context) {
	if r != nil {
		_ = r.processor.ForceFlush(ctx) // there is nobody left to tell
	}
}
