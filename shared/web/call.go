package web

import (
	"context"
	"log/slog"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"melmastoon.ghasi.io/bff-consumer/shared/telemetry"
)

// Call is what the pipeline knows about one request. It is safe for concurrent use, also by work that outlives the
// request: what is noted after the answer is dropped.
type Call struct {
	ID          string     // of the request, echoed as X-Request-Id
	Traceparent string     // to send with every call made for this request; this service is the parent
	TraceID     string     // 32 hex digits
	ClientIP    netip.Addr // by the hop we own; invalid when unknown
	Started     time.Time

	request *telemetry.Request // nil: not measured
	private bool               // a door that no guest waits at
	spanID  string
	sampled bool
	now     func() time.Time
	out     writer

	mu     sync.Mutex
	done   bool
	alarm  bool // somebody has to look at this
	notes  []slog.Attr
	phases []phase
	room   [6]phase // what phases grows in, so that a usual request allocates nothing for it
}

// phase is a named part of the request and the time spent in it so far.
type phase struct {
	name string
	took time.Duration
}

type callKey struct{}

// From returns the call a context belongs to. Outside the pipeline it is a call of its own without an id, never nil.
func From(ctx context.Context) *Call {
	if c, ok := ctx.Value(callKey{}).(*Call); ok {
		return c
	}
	return &Call{Started: time.Now(), now: time.Now}
}

func newCall(s *state, w http.ResponseWriter, r *http.Request) *Call {
	c := &Call{Started: s.now(), now: s.now, ClientIP: clientIP(r, s.config.TrustedHops)}
	c.ID = requestID(r.Header, c.Started)
	c.trace(r.Header)
	c.phases = c.room[:0]
	c.out = writer{ResponseWriter: w, call: c}
	w.Header().Set("X-Request-Id", c.ID)
	return c
}

// Took is how long the request has run.
func (c *Call) Took() time.Duration { return c.now().Sub(c.Started) }

// Note adds a field to the request's log record; noting the same key again replaces the value. Values must not identify
// a guest.
func (c *Call) Note(key string, value any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.done {
		return
	}
	for i := range c.notes {
		if c.notes[i].Key == key {
			c.notes[i].Value = slog.AnyValue(value)
			return
		}
	}
	if c.notes == nil {
		c.notes = make([]slog.Attr, 0, 8)
	}
	c.notes = append(c.notes, slog.Any(key, value))
}

// Alarm makes the request's log record an error that alerts find by its field "alarm", whatever the answer says.
// Names are for ever.
func (c *Call) Alarm(name string) {
	c.Note("alarm", name)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.alarm = true
}

// Phase begins a named part of the request and returns the function that ends it. Parts of one name add up. The name is
// a token of RFC 9110 and appears, with milliseconds, in Server-Timing and the log record.
func (c *Call) Phase(name string) (stop func()) {
	began := c.now()
	return func() {
		ended := c.now()
		c.spent(name, ended.Sub(began))
		c.request.Phase(name, began, ended)
	}
}

func (c *Call) spent(name string, took time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.done {
		return
	}
	for i := range c.phases {
		if c.phases[i].name == name {
			c.phases[i].took += took
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
	return c.notes, c.phases, c.alarm
}
