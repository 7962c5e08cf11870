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

// Call holds the data of a request: its ids, the fields and phases of its log record, and its span.
// It is safe for concurrent use, also by goroutines that outlive the request: log fields and phases
// added after the log record are dropped. A Call comes from FromContext only: Elapsed and Phase of
// a zero Call panic.
type Call struct {
	ID          string     // request id, echoed as X-Request-Id
	Traceparent string     // W3C header for calls to other services; this service is the parent span
	TraceID     string     // 32 hex digits
	ClientIP    netip.Addr // see clientIP; invalid if unknown
	Started     time.Time

	request  *otlp.Request // nil: no telemetry
	internal bool          // request of an internal endpoint
	spanID   string
	sampled  bool
	now      func() time.Time
	out      responseWriter

	mu        sync.Mutex
	done      bool
	alert     bool // set by MarkAlert
	logFields []slog.Attr
	phases    []phase
	phaseBuf  [6]phase // first array of phases: a request with up to six phases allocates none
}

// phase is a named part of the request and the time spent in it so far.
type phase struct {
	name     string
	duration time.Duration
}

type callKey struct{}

// FromContext returns the call of the request that a context belongs to. Outside the pipeline it
// returns a new call without ids at each use, never nil; nothing logs the fields of such a call. It
// never fails and takes no lock.
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

// Elapsed returns the time since the request started or, if the process was still warming up, since
// the end of the warm-up. It reads the clock, takes no lock and never fails.
func (c *Call) Elapsed() time.Duration { return c.now().Sub(c.Started) }

// AddLogField adds a field to the request's log record, or replaces the value of a field with the
// same key. Values must not identify a guest. It takes the request's mutex for a moment and never
// fails. The value is encoded later, with the record; a value without a JSON form is logged as an
// error text. A field added after the log record is dropped without notice, and a field added after
// the start of the response is logged but not counted by the metrics.
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

// MarkAlert logs the request with severity ERROR and the field "alarm", whatever the response
// status is. Alerts find the record by the name, so a name never changes. A second name replaces
// the first. After the log record MarkAlert does nothing; after the start of the response it sets
// the record but not the metric. It takes the request's mutex twice for a moment and never fails.
func (c *Call) MarkAlert(name string) {
	c.AddLogField("alarm", name)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.alert = true
}

// Phase starts a named part of the request and returns the function that ends it. The durations of
// parts with the same name are added up, also of concurrent parts, and again at each call of stop.
// The name must be a token of RFC 9110, which is not checked; it appears with milliseconds in
// Server-Timing and in the log record, and as a child span in a sampled trace. A part that ends
// after the start of the response is only in the log record, and after the log record nowhere.
// Phase reads the clock; stop takes mutexes of the request and the telemetry for a moment. Neither
// fails or waits for the network.
func (c *Call) Phase(name string) (stop func()) {
	start := c.now()
	return func() {
		end := c.now()
		c.addPhaseTime(name, end.Sub(start))
		c.request.AddPhase(name, start, end)
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

// close returns the log fields and phases. Later additions are dropped.
func (c *Call) close() (fields []slog.Attr, phases []phase, alert bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.done = true
	return c.logFields, c.phases, c.alert
}
