package telemetry

import (
	"context"
	"sync"
	"time"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

const (
	spansEvery   = time.Second      // at the end of a request that comes later than that after the last export
	metricsEvery = 15 * time.Second // a series takes no more than a point in 5 s at Google
	spansAtOnce  = 512              // that wait are sent without waiting for the time
	spansKept    = 4096             // more are dropped, and counted
	sentWithin   = 2 * time.Second
	shortRest    = 5 * time.Second // after an export that failed; each in a row doubles it
	longRest     = time.Minute
)

// export keeps what was measured until a request has the time to send it. One export is under way at a time; who comes
// meanwhile leaves theirs to the next. It is the tracer's span processor.
type export struct {
	to     exporter
	reader *sdkmetric.ManualReader
	now    func() time.Time

	mu        sync.Mutex
	spans     []sdktrace.ReadOnlySpan
	dropped   int64 // spans, ever
	flying    chan struct{}
	spansAt   time.Time // of the last export
	metricsAt time.Time
	failures  int // in a row
	restUntil time.Time
}

// exporter is a collector, or what a test has for one.
type exporter interface {
	ExportSpans(context.Context, []sdktrace.ReadOnlySpan) error
	Export(context.Context, *metricdata.ResourceMetrics) error
}

func newExport(to exporter, now func() time.Time) *export {
	return &export{to: to, reader: sdkmetric.NewManualReader(), now: now}
}

// OnStart has nothing to do.
func (*export) OnStart(context.Context, sdktrace.ReadWriteSpan) {}

// OnEnd keeps a span. Of many that wait, the last one begins an export: a run of the relay makes them by the thousand.
func (e *export) OnEnd(s sdktrace.ReadOnlySpan) {
	if !s.SpanContext().IsSampled() {
		return
	}
	e.mu.Lock()
	if len(e.spans) >= spansKept {
		e.dropped++
		e.mu.Unlock()
		return
	}
	e.spans = append(e.spans, cleanSpan{s})
	full := len(e.spans) >= spansAtOnce
	e.mu.Unlock()
	if full {
		e.begin(spansEvery, metricsEvery)
	}
}

// ForceFlush sends everything, after what is under way.
func (e *export) ForceFlush(ctx context.Context) error {
	e.mu.Lock()
	flying := e.flying
	e.mu.Unlock()
	if err := landed(ctx, flying); err != nil {
		return err
	}
	return landed(ctx, e.begin(0, 0))
}

// landed waits for an export; nil is none.
func landed(ctx context.Context, flying chan struct{}) error {
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
func (e *export) Shutdown(ctx context.Context) error { return e.ForceFlush(ctx) }

// begin starts an export of what is due: what was last sent so long ago, or spans that have become many. It returns nil
// when nothing is, when the collector is left in peace, and while another export is under way.
func (e *export) begin(spansAge, metricsAge time.Duration) (flying chan struct{}) {
	e.mu.Lock()
	defer e.mu.Unlock()
	now := e.now()
	if e.flying != nil || now.Before(e.restUntil) {
		return nil
	}
	var spans []sdktrace.ReadOnlySpan
	if len(e.spans) > 0 && (len(e.spans) >= spansAtOnce || now.Sub(e.spansAt) >= spansAge) {
		spans, e.spans, e.spansAt = e.spans, nil, now
	}
	points := now.Sub(e.metricsAt) >= metricsAge
	if points {
		e.metricsAt = now
	}
	if spans == nil && !points {
		return nil
	}
	e.flying = make(chan struct{})
	go e.send(spans, points)
	return e.flying
}

// send is one export: both requests at once, each tried one time. It may outlive the request that began it: losing it
// costs no guest anything, and counts are sent again with the next.
func (e *export) send(spans []sdktrace.ReadOnlySpan, points bool) {
	ctx, cancel := context.WithTimeout(context.Background(), sentWithin)
	defer cancel()
	var all sync.WaitGroup
	var traced, measured error
	if len(spans) > 0 {
		all.Go(func() { traced = e.to.ExportSpans(ctx, spans) })
	}
	if points {
		all.Go(func() {
			var now metricdata.ResourceMetrics
			if measured = e.reader.Collect(ctx, &now); measured == nil {
				measured = e.to.Export(ctx, &now)
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
		e.restUntil = e.now().Add(min(shortRest<<min(e.failures, 10), longRest))
		e.failures++
	} else {
		e.failures = 0
	}
	close(e.flying)
	e.flying = nil
}

// lost is how many spans were dropped since the start.
func (e *export) lost() int64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.dropped
}

// Flush sends what is due and waits for it, within a limit; what takes longer goes on while another request runs. It
// reports whether anything was. A job also says how it stands whenever it ends: its next run may be a day away.
func (q *Request) Flush(job bool, within time.Duration) bool {
	every := metricsEvery
	if job {
		every = spansEvery
	}
	flying := q.room.export.begin(spansEvery, every)
	if flying == nil {
		return false
	}
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	_ = landed(ctx, flying)
	return true
}

// Close sends everything, for a process that is about to end.
func (r *Room) Close(ctx context.Context) {
	if r != nil {
		_ = r.export.ForceFlush(ctx) // there is nobody left to tell
	}
}
