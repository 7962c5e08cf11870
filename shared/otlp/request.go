package otlp

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"
)

// Request is the server span and the metrics of one incoming request. A nil *Request is valid for
// AddPhase and End, which then do nothing; Flush needs a Request.
type Request struct {
	recorder      *Recorder
	ctx           context.Context // with the span
	span          trace.Span
	method, route string
	start         time.Time
}

// StartRequest starts the span of a request at time began. route is the path pattern. parent is a
// valid traceparent or ""; another text may panic. A parent decides whether the span is sampled,
// otherwise OTEL_TRACES_SAMPLER_ARG does; metrics count every request. The client's tracestate is
// ignored: it may contain any text. The returned context carries the span; later spans of the
// request must start from it. r must not be nil. CPU and memory only; it never fails.
func (r *Recorder) StartRequest(ctx context.Context, method, route, parent string, began time.Time) (context.Context, *Request) {
	ctx = context.WithValue(ctx, recorderKey{}, r)
	from := ctx
	if parent != "" {
		from = trace.ContextWithRemoteSpanContext(ctx, parseTraceparent(parent))
	}
	_, span := r.tracer.Start(from, method+" "+route, trace.WithSpanKind(trace.SpanKindServer), trace.WithTimestamp(began),
		trace.WithAttributes(attribute.String("http.request.method", method), attribute.String("http.route", route)))
	ctx = trace.ContextWithSpan(ctx, span)
	return ctx, &Request{r, ctx, span, method, route, began}
}

// parseTraceparent parses a traceparent that the caller has validated.
func parseTraceparent(parent string) trace.SpanContext {
	var c trace.SpanContextConfig
	c.TraceID, _ = trace.TraceIDFromHex(parent[3:35])
	c.SpanID, _ = trace.SpanIDFromHex(parent[36:52])
	if flag := parent[54]; (flag <= '9' && (flag-'0')&1 == 1) || flag > '9' && (flag-'a'+10)&1 == 1 {
		c.TraceFlags = trace.FlagsSampled
	}
	c.Remote = true
	return trace.NewSpanContext(c)
}

// Traceparent returns the traceparent header for calls made on behalf of ctx, also of a request
// that is not sampled, or "" if ctx has no span. CPU only.
func Traceparent(ctx context.Context) string {
	c := trace.SpanContextFromContext(ctx)
	if !c.IsValid() {
		return ""
	}
	return "00-" + c.TraceID().String() + "-" + c.SpanID().String() + "-" + c.TraceFlags().String()
}

// AddPhase adds a finished phase of the request as a child span. It does nothing on a nil Request,
// if the request is not sampled, and after End. It queues the span as Span.End does. Safe for
// concurrent use.
func (q *Request) AddPhase(name string, began, ended time.Time) {
	if q == nil || !q.span.IsRecording() {
		return
	}
	_, span := q.recorder.tracer.Start(q.ctx, name, trace.WithTimestamp(began))
	span.End(trace.WithTimestamp(ended))
}

// RequestOutcome describes a finished request. Every text comes from a fixed set; "" leaves the
// attribute out.
type RequestOutcome struct {
	Status      int
	CacheState  string // "HIT", "STALE", "MISS", "BYPASS"
	LimitPolicy string // policy of the rate limit that rejected the request
	BotVerdict  string // verdict of the bot detector
	Alert       string
	Degraded    bool
}

// End ends the span and updates the metrics, also of a cancelled or unsampled request. at is the
// time of the first response byte. Call it once: a second End counts the request again. It does
// nothing on a nil Request. It only updates memory, under mutexes of the SDK and the Recorder held
// for a moment; Flush exports.
func (q *Request) End(o RequestOutcome, at time.Time) {
	if q == nil {
		return
	}
	ctx, m := context.WithoutCancel(q.ctx), q.recorder.metrics
	attrs := make([]attribute.KeyValue, 0, 6)
	attrs = append(attrs, attribute.Int("http.response.status_code", o.Status))
	if o.CacheState != "" {
		attrs = append(attrs, attribute.String("bff.cache.state", o.CacheState))
	}
	if o.Status >= http.StatusInternalServerError {
		attrs = append(attrs, attribute.String("error.type", strconv.Itoa(o.Status)))
		q.span.SetStatus(codes.Error, "")
	}
	q.span.SetAttributes(attrs...)
	q.span.SetAttributes(attribute.Bool("bff.degraded", o.Degraded))
	q.span.End(trace.WithTimestamp(at))
	attrs = append(attrs, attribute.String("http.request.method", q.method), attribute.String("http.route", q.route))
	m.requests.Record(ctx, at.Sub(q.start).Seconds(), metric.WithAttributes(attrs...))
	for _, c := range []struct {
		counter    metric.Int64Counter
		key, value string
	}{
		{m.refusals, "bff.limiter.policy", o.LimitPolicy},
		{m.verdicts, "bff.bot.verdict", o.BotVerdict},
		{m.alerts, "bff.alarm", o.Alert},
	} {
		if c.value != "" {
			c.counter.Add(ctx, 1, metric.WithAttributes(attribute.String(c.key, c.value), attribute.String("http.route", q.route)))
		}
	}
}
