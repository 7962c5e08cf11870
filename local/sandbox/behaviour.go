package sandbox

import (
	"bytes"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"melmastoon.ghasi.io/bff-consumer/shared/problem"
)

// Behaviour holds the faults that an upstream simulates. The zero Behaviour is normal operation.
type Behaviour struct {
	LatencyMs int `json:"latencyMs"` // wait before the response
	JitterMs  int `json:"jitterMs"`  // upper limit of an additional random wait
	// share of failing calls, 0 to 1, evenly distributed; default 1 with a Status
	ErrorRate float64 `json:"errorRate"`
	Status    int     `json:"status"`    // of failing calls; default 503 with an ErrorRate
	Hang      bool    `json:"hang"`      // no response until the caller disconnects or the behaviour changes
	Malformed bool    `json:"malformed"` // responses end in the middle
}

const maxDelayMs = 600_000

// WithDefaults sets ErrorRate 1 if only Status is set, and Status 503 if only ErrorRate is set.
func (b Behaviour) WithDefaults() Behaviour {
	switch {
	case b.Status != 0 && b.ErrorRate == 0:
		b.ErrorRate = 1
	case b.Status == 0 && b.ErrorRate > 0:
		b.Status = http.StatusServiceUnavailable
	}
	return b
}

// Validate returns an error for each member out of range, or nil.
func (b Behaviour) Validate() []problem.FieldError {
	var wrong []problem.FieldError
	add := func(ok bool, field, detail string) {
		if !ok {
			wrong = append(wrong, problem.FieldError{Field: field, Code: "out-of-range", Detail: detail})
		}
	}
	add(b.LatencyMs >= 0 && b.LatencyMs <= maxDelayMs, "latencyMs", "Must be from 0 to 600000.")
	add(b.JitterMs >= 0 && b.JitterMs <= maxDelayMs, "jitterMs", "Must be from 0 to 600000.")
	add(b.ErrorRate >= 0 && b.ErrorRate <= 1, "errorRate", "Must be from 0 to 1.")
	add(b.Status == 0 || b.Status >= 400 && b.Status <= 599, "status", "Must be from 400 to 599.")
	return wrong
}

// Upstream is a service with its behaviour and its counters. It is safe for concurrent use.
type Upstream struct {
	Name    string
	handler http.Handler

	current  atomic.Pointer[activeBehaviour]
	counters counters
	routes   sync.Map // *atomic.Int64 by route
}

// activeBehaviour is the current behaviour of an upstream.
type activeBehaviour struct {
	Behaviour
	calls    atomic.Int64  // since the behaviour was set
	replaced chan struct{} // closed when the next behaviour is set
}

type counters struct{ calls, failed, hung, malformed, abandoned, inFlight atomic.Int64 }

// Counters count the requests of an upstream since its start or its latest reset.
type Counters struct {
	Calls     int64 `json:"calls"`     // received requests
	Failed    int64 `json:"failed"`    // simulated errors
	Hung      int64 `json:"hung"`      // simulated hangs
	Malformed int64 `json:"malformed"` // truncated responses
	Abandoned int64 `json:"abandoned"` // callers that disconnected before the response
	// requests in progress; a reset does not change this counter
	InFlight  int64            `json:"inFlight"`
	Routes    map[string]int64 `json:"routes"` // calls by "METHOD path"
	Behaviour Behaviour        `json:"behaviour"`
}

func newUpstream(name string, handler http.Handler) *Upstream {
	u := &Upstream{Name: name, handler: handler}
	u.current.Store(&activeBehaviour{replaced: make(chan struct{})})
	return u
}

// SetBehaviour replaces the behaviour for later calls. Hanging calls continue with a response.
func (u *Upstream) SetBehaviour(b Behaviour) {
	before := u.current.Swap(&activeBehaviour{Behaviour: b.WithDefaults(), replaced: make(chan struct{})})
	close(before.replaced)
}

// Reset restores normal behaviour and sets the counters to 0.
func (u *Upstream) Reset() {
	u.SetBehaviour(Behaviour{})
	for _, c := range []*atomic.Int64{&u.counters.calls, &u.counters.failed, &u.counters.hung, &u.counters.malformed, &u.counters.abandoned} {
		c.Store(0)
	}
	u.routes.Clear()
}

// Counters returns the current counters. Concurrent calls may change single counters meanwhile.
func (u *Upstream) Counters() Counters {
	c := Counters{
		Calls: u.counters.calls.Load(), Failed: u.counters.failed.Load(), Hung: u.counters.hung.Load(),
		Malformed: u.counters.malformed.Load(), Abandoned: u.counters.abandoned.Load(), InFlight: u.counters.inFlight.Load(),
		Routes: map[string]int64{}, Behaviour: u.current.Load().Behaviour,
	}
	u.routes.Range(func(route, count any) bool {
		c.Routes[route.(string)] = count.(*atomic.Int64).Load()
		return true
	})
	return c
}

const healthPath = "/healthz"

// ServeHTTP responds as the service does, with the simulated faults. Health checks have no faults
// and are not counted.
func (u *Upstream) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == healthPath {
		w.WriteHeader(http.StatusOK)
		return
	}
	u.counters.calls.Add(1)
	u.counters.inFlight.Add(1)
	defer u.counters.inFlight.Add(-1)
	now := u.current.Load()
	if !u.wait(now, r) {
		u.counters.abandoned.Add(1)
		panic(http.ErrAbortHandler) // the caller has disconnected
	}
	if shouldFail(now.calls.Add(1), now.ErrorRate) {
		u.counters.failed.Add(1)
		writeProblem(w, now.Status, "The sandbox simulates an error.")
		return
	}
	if r.Header.Get("X-Tenant-Id") != "" {
		writeProblem(w, http.StatusBadRequest, "The service rejects X-Tenant-Id, because requests are across tenants.")
		return
	}
	if now.Malformed {
		u.counters.malformed.Add(1)
		half := &truncatedWriter{ResponseWriter: w}
		u.serve(half, r)
		half.flush()
		return
	}
	u.serve(w, r)
}

// serve calls the service and then counts the route, which the mux stores in the request.
func (u *Upstream) serve(w http.ResponseWriter, r *http.Request) {
	u.handler.ServeHTTP(w, r)
	if r.Pattern == "" {
		return
	}
	count, ok := u.routes.Load(r.Pattern)
	if !ok {
		count, _ = u.routes.LoadOrStore(r.Pattern, new(atomic.Int64))
	}
	count.(*atomic.Int64).Add(1)
}

// wait waits for the simulated latency and hang. It returns false if the caller disconnects.
func (u *Upstream) wait(now *activeBehaviour, r *http.Request) bool {
	delay := time.Duration(now.LatencyMs) * time.Millisecond
	if now.JitterMs > 0 {
		delay += time.Duration(rand.Int64N(int64(now.JitterMs)*int64(time.Millisecond) + 1))
	}
	if delay == 0 && !now.Hang {
		return true
	}
	// net/http detects a disconnect only after the handler has read the body.
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return false
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	if delay > 0 {
		timer := time.NewTimer(delay)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-r.Context().Done():
			return false
		}
	}
	if now.Hang {
		u.counters.hung.Add(1)
		select {
		case <-now.replaced:
		case <-r.Context().Done():
			return false
		}
	}
	return true
}

// shouldFail distributes failures evenly: of the first n calls, rate × n fail, rounded down.
func shouldFail(n int64, rate float64) bool {
	return int64(float64(n)*rate) > int64(float64(n-1)*rate)
}

// truncatedWriter buffers a response. flush sends the first half as a complete response.
type truncatedWriter struct {
	http.ResponseWriter
	status int
	body   strings.Builder
}

func (h *truncatedWriter) WriteHeader(status int)      { h.status = status }
func (h *truncatedWriter) Write(p []byte) (int, error) { return h.body.Write(p) }

func (h *truncatedWriter) flush() {
	text := h.body.String()
	text = text[:len(text)/2]
	h.Header().Set("Content-Length", strconv.Itoa(len(text)))
	if h.status != 0 {
		h.ResponseWriter.WriteHeader(h.status)
	}
	h.ResponseWriter.Write([]byte(text))
}
