package web

import (
	"context"
	"log/slog"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"melmastoon.ghasi.io/bff-consumer/shared/otlp"
)

// Call is what the pipeline knows about one request. It is safe for concurrent use, also by work that outlives the
// request: what is noted after the answer is dropped.
type Call struct {
	ID          string     // of the request, echoed as X-Request-Id
	Traceparent string     // to send with every call made for this request; this service is the parent
	TraceID     string     // 32 hex digits
	ClientIP    netip.Addr // by the hop we own; invalid when unknown
	Started     time.Time

	request  *otlp.Request // nil: not measured
	internal bool          // a door that no guest waits at
	spanID   string
	sampled  bool
	now      func() time.Time
	out      responseWriter

	mu        sync.Mutex
	done      bool
	alert     bool // somebody has to look at this
	logFields []slog.Attr
	phases    []phase
	phaseBuf  [6]phase // what phases grows in, so that a usual request allocates nothing for it
}

// phase is a named part of the request and the time spent in it so far.
type phase struct {
	name     string
	duration time.Duration
}

type callKey struct{}

// FromContext returns the call a context belongs to. Outside the pipeline it is a call of its own without an id, never nil.
func FromContext(ctx context.Context) *Call {
	if c, ok := ctx.Value(callKey{}).(*Call); ok {
		return c
	}
	return &Call{Started: time.Now(), now: time.Now}
}

func newCall(s *state, w http.ResponseWriter, r *http.Request) *Call {
	c := &Call{Started: s.now(), now: s.now, ClientIP: clientIP(r, s.config.TrustedHops)}
	c.ID = requestID(r.Header, c.Started)
	c.joinTrace(r.Header)
	c.phases = c.phaseBuf[:0]
	c.out = responseWriter{ResponseWriter: w, call: c}
	w.Header().Set("X-Request-Id", c.ID)
	return c
}

// Elapsed is how long the request has run.
func (c *Call) Elapsed() time.Duration { return c.now().Sub(c.Started) }

// AddLogField adds a field to the request's log record; noting the same key again replaces the value. Values must not identify
// a guest.
func (c *Call) AddLogField(key string, value any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.done {
		return
	}
	for i := range c.logFields {
		if c.logFields[i].Key == key {
			c.logFields[i].Value = slog.AnyValue(value)
			return
		}
	}
	if c.logFields == nil {
		c.logFields = make([]slog.Attr, 0, 8)
	}
	c.logFields = append(c.logFields, slog.Any(key, value))
}

// MarkAlert makes the request's log record an error that alerts find by its field "alarm", whatever the answer says.
// Names are for ever.
func (c *Call) MarkAlert(name string) {
	c.AddLogField("alarm", name)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.alert = true
}

// Phase begins a named part of the request and returns the function that ends it. Parts of one name add up. The name is
// a token of RFC 9110 and appears, with milliseconds, in Server-Timing and the log record.
func (c *Call) Phase(name string) (stop func()) {
	began := c.now()
	return func() {
		ended := c.now()
		c.addPhaseTime(name, ended.Sub(began))
		c.request.AddPhase(name, began, ended)
	}
}

func (c *Call) addPhaseTime(name string, took time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.done {
		return
	}
	for i := range c.phases {
		if c.phases[i].name == name {
			c.phases[i].duration += took
			return
		}
	}
	c.phases = append(c.phases, phase{name, took})
}

// close returns what was noted; from now on nothing more is.
func (c *Call) close() (notes []slog.Attr, phases []phase, alarm bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.done = true
	return c.logFields, c.phases, c.alert
}
