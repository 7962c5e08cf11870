package web

import (
	"context"
	"net/http"
	"time"

	"melmastoon.ghasi.io/bff-consumer/shared/otlp"
)

// The longest time a response waits for the export of telemetry, at most once a second per
// instance. Responses of internal endpoints may wait longer, because no guest waits for them.
const (
	exportTimeout         = 50 * time.Millisecond
	internalExportTimeout = time.Second
)

// startSpan starts the request's span and copies its ids to c, so that log record, traceparent and
// trace agree. The span is a child of the caller's span, or starts a new trace.
func (c *Call) startSpan(ctx context.Context, recorder *otlp.Recorder, f *Function, r *http.Request) context.Context {
	parent := ""
	if h := r.Header["Traceparent"]; len(h) == 1 && validTraceparent(h[0]) {
		parent = h[0]
	}
	ctx, c.request = recorder.StartRequest(ctx, knownMethod(r.Method), f.route.path, parent, c.Started)
	c.Traceparent = otlp.Traceparent(ctx)
	c.TraceID, c.spanID = c.Traceparent[3:35], c.Traceparent[36:52]
	c.sampled = c.Traceparent[54] == '1'
	c.internal = f.internal
	return ctx
}

// endSpan ends the span when the response starts, and exports due telemetry before sending the
// response: once the client has the whole response, the platform may take the processor away. The
// span therefore does not show a failure in the middle of the body; the log record does.
func (c *Call) endSpan(status int) {
	if c.request == nil {
		return
	}
	now := c.now()
	c.request.End(c.outcome(status), now)
	timeout := exportTimeout
	if c.internal {
		timeout = internalExportTimeout
	}
	if c.request.Flush(c.internal, timeout) {
		c.addPhaseTime("export", c.now().Sub(now))
	}
}

// outcome returns the log fields that metrics count.
func (c *Call) outcome(status int) otlp.RequestOutcome {
	o := otlp.RequestOutcome{Status: status}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, field := range c.logFields {
		switch field.Key {
		case "cache":
			o.CacheState = field.Value.String()
		case "limited":
			o.LimitPolicy = field.Value.String()
		case "bot":
			o.BotVerdict = field.Value.String()
		case "alarm":
			o.Alert = field.Value.String()
		case "degraded":
			o.Degraded = field.Value.String() != "false"
		}
	}
	return o
}
