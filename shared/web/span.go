package web

import (
	"context"
	"net/http"
	"time"

	"melmastoon.ghasi.io/bff-consumer/shared/otlp"
)

// How long an answer waits for what was measured to be sent, at most once a second in an instance. At a private door
// nobody waits for it.
const (
	exportTimeout         = 50 * time.Millisecond
	internalExportTimeout = time.Second
)

// startSpan opens the request's span and takes its ids, so that log, traceparent and trace agree. The span stands where
// the caller's says, or begins a trace.
func (c *Call) startSpan(ctx context.Context, room *otlp.Recorder, f *Function, r *http.Request) context.Context {
	parent := ""
	if h := r.Header["Traceparent"]; len(h) == 1 && validTraceparent(h[0]) {
		parent = h[0]
	}
	ctx, c.request = room.StartRequest(ctx, knownMethod(r.Method), f.route.path, parent, c.Started)
	c.Traceparent = otlp.Traceparent(ctx)
	c.TraceID, c.spanID = c.Traceparent[3:35], c.Traceparent[36:52]
	c.sampled = c.Traceparent[54] == '1'
	c.internal = f.internal
	return ctx
}

// endSpan ends the measuring where the answer begins, and sends what is due before it: once a client has the whole
// answer, the platform may take the processor away. An answer that fails half-way is the log's to tell.
func (c *Call) endSpan(status int) {
	if c.request == nil {
		return
	}
	at := c.now()
	c.request.End(c.outcome(status), at)
	within := exportTimeout
	if c.internal {
		within = internalExportTimeout
	}
	if c.request.Flush(c.internal, within) {
		c.addPhaseTime("export", c.now().Sub(at))
	}
}

// outcome is what the notes say of the request, as far as it is counted.
func (c *Call) outcome(status int) otlp.RequestOutcome {
	o := otlp.RequestOutcome{Status: status}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, note := range c.logFields {
		switch note.Key {
		case "cache":
			o.CacheState = note.Value.String()
		case "limited":
			o.LimitPolicy = note.Value.String()
		case "bot":
			o.BotVerdict = note.Value.String()
		case "alarm":
			o.Alert = note.Value.String()
		case "degraded":
			o.Degraded = note.Value.String() != "false"
		}
	}
	return o
}
