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

// Behaviour is how an upstream misbehaves. The zero Behaviour is good.
type Behaviour struct {
	LatencyMs int     `json:"latencyMs"` // waits so long before it answers
	JitterMs  int     `json:"jitterMs"`  // and up to so much more
	ErrorRate float64 `json:"errorRate"` // share of calls that fail, 0..1, evenly spread; 1 when only Status is given
	Status    int     `json:"status"`    // what failing calls answer; 503 when only ErrorRate is given
	Hang      bool    `json:"hang"`      // never answers; the caller has to give up
	Malformed bool    `json:"malformed"` // breaks its answers off in the middle
}

const maxDelayMs = 600_000

// WithDefaults fills in what the one of ErrorRate and Status says about the other.
func (b Behaviour) WithDefaults() Behaviour {
	switch {
	case b.Status != 0 && b.ErrorRate == 0:
		b.ErrorRate = 1
	case b.Status == 0 && b.ErrorRate > 0:
		b.Status = http.StatusServiceUnavailable
	}
	return b
}

// Validate says what is wrong with a behaviour.
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

// Upstream is one service with its behaviour and its counters.
type Upstream struct {
	Name    string
	handler http.Handler

	current  atomic.Pointer[activeBehaviour]
	counters counters
	routes   sync.Map // route → *atomic.Int64
}

// activeBehaviour is a behaviour while it lasts.
type activeBehaviour struct {
	Behaviour
	calls    atomic.Int64
	replaced chan struct{} // closed when another one begins
}

type counters struct{ calls, failed, hung, malformed, abandoned, inFlight atomic.Int64 }

// Counters are what an upstream counted since it started or was reset.
type Counters struct {
	Calls     int64            `json:"calls"`     // requests that arrived
	Failed    int64            `json:"failed"`    // answered with an error because they were told to
	Hung      int64            `json:"hung"`      // were left waiting
	Malformed int64            `json:"malformed"` // answered with half an answer
	Abandoned int64            `json:"abandoned"` // callers that left before the answer
	InFlight  int64            `json:"inFlight"`  // being answered now
	Routes    map[string]int64 `json:"routes"`    // calls by "METHOD path"
	Behaviour Behaviour        `json:"behaviour"`
}

func newUpstream(name string, handler http.Handler) *Upstream {
	u := &Upstream{Name: name, handler: handler}
	u.current.Store(&activeBehaviour{replaced: make(chan struct{})})
	return u
}

// SetBehaviour makes the upstream behave so from now on. Calls that hang go on as soon as it no longer does.
func (u *Upstream) SetBehaviour(b Behaviour) {
	before := u.current.Swap(&activeBehaviour{Behaviour: b.WithDefaults(), replaced: make(chan struct{})})
	close(before.replaced)
}

// Reset makes the upstream behave well and counts from 0 again.
func (u *Upstream) Reset() {
	u.SetBehaviour(Behaviour{})
	for _, c := range []*atomic.Int64{&u.counters.calls, &u.counters.failed, &u.counters.hung, &u.counters.malformed, &u.counters.abandoned} {
		c.Store(0)
	}
	u.routes.Clear()
}

// Counters reads the counters.
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

// ServeHTTP answers as the service would, or as badly as it was told to.
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
		panic(http.ErrAbortHandler) // there is nobody to answer
	}
	if shouldFail(now.calls.Add(1), now.ErrorRate) {
		u.counters.failed.Add(1)
		writeProblem(w, now.Status, "The sandbox was told to fail.")
		return
	}
	if r.Header.Get("X-Tenant-Id") != "" {
		writeProblem(w, http.StatusBadRequest, "This service takes no X-Tenant-Id: it is asked across tenants.")
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

// serve lets the service answer and counts its route, which the mux finds out.
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

// wait spends the latency and hangs. It is false when the caller left.
func (u *Upstream) wait(now *activeBehaviour, r *http.Request) bool {
	delay := time.Duration(now.LatencyMs) * time.Millisecond
	if now.JitterMs > 0 {
		delay += time.Duration(rand.Int64N(int64(now.JitterMs)*int64(time.Millisecond) + 1))
	}
	if delay == 0 && !now.Hang {
		return true
	}
	// The server watches the connection, and so learns that the caller left, only once the body is read.
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

// shouldFail spreads the failures of a rate evenly: of the first n calls, rate × n fail, rounded down.
func shouldFail(n int64, rate float64) bool {
	return int64(float64(n)*rate) > int64(float64(n-1)*rate)
}

// truncatedWriter keeps an answer back and then sends the first half of it.
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
