package web

import (
	"context"
	"net/http"
	"time"

	"melmastoon.ghasi.io/bff-consumer/shared/telemetry"
)

// How long an answer waits for what was measured to be sent, at most once a second in an instance. At a private door
// nobody waits for it.
const (
	sendWithin        = 50 * time.Millisecond
	sendWithinPrivate = time.Second
)

// measure opens the request's span and takes its ids, so that log, traceparent and trace agree. The span stands where
// the caller's says, or begins a trace.
func (c *Call) measure(ctx context.Context, room *telemetry.Room, f *Function, r *http.Request) context.Context {
	parent := ""
	if h := r.Header["Traceparent"]; len(h) == 1 && validTraceparent(h[0]) {
		parent = h[0]
	}
	ctx, c.request = room.Begin(ctx, knownMethod(r.Method), f.route.path, parent, c.Started)
	c.Traceparent = telemetry.Traceparent(ctx)
	c.TraceID, c.spanID = c.Traceparent[3:35], c.Traceparent[36:52]
	c.sampled = c.Traceparent[54] == '1'
	c.private = f.private
	return ctx
}

// answered ends the measuring where the answer begins, and sends what is due before it: once a client has the whole
// answer, the platform may take the processor away. An answer that fails half-way is the log's to tell.
func (c *Call) answered(status int) {
	if c.request == nil {
		return
	}
	at := c.now()
	c.request.End(c.outcome(status), at)
	within := sendWithin
	if c.private {
		within = sendWithinPrivate
	}
	if c.request.Flush(c.private, within) {
		c.spent("export", c.now().Sub(at))
	}
}

// outcome is what the notes say of the request, as far as it is counted.
func (c *Call) outcome(status int) telemetry.Outcome {
	o := telemetry.Outcome{Status: status}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, note := range c.notes {
		switch note.Key {
		case "cache":
			o.Cache = note.Value.String()
		case "limited":
			o.Limited = note.Value.String()
		case "bot":
			o.Bot = note.Value.String()
		case "alarm":
			o.Alarm = note.Value.String()
		case "degraded":
			o.Degraded = note.Value.String() != "false"
		}
	}
	return o
}
