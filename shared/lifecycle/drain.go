package lifecycle

import (
	"context"
	"os"
	"sync/atomic"
	"time"

	"melmastoon.ghasi.io/bff-consumer/shared/lifecycle/sigterm"
)

// The platform sends SIGTERM ten seconds before it kills an instance. The functions framework owns
// the listener and would exit at once on SIGTERM.
const (
	drainTimeout      = 9 * time.Second
	drainIdleChecks   = 5                      // idle checks in a row that end the drain
	drainPollInterval = 20 * time.Millisecond  // between two checks
	flushTimeout      = 500 * time.Millisecond // for sending the telemetry after the drain
)

// Requests counts the requests of a process and ends them in order when the process stops. The zero
// value is ready to use. Safe for concurrent use.
type Requests struct {
	inFlight  atomic.Int64
	started   atomic.Int64 // since the process started
	draining  atomic.Bool
	rejecting atomic.Bool
}

// Begin counts a request as in flight until End. Two atomic additions; it never refuses or waits.
func (r *Requests) Begin() {
	r.inFlight.Add(1)
	r.started.Add(1)
}

// End ends a request. Call End exactly once per Begin: an extra End hides a request from Drain.
// While the process drains, send the response to the client before calling End: the process may
// exit right after it.
func (r *Requests) End() { r.inFlight.Add(-1) }

// Draining reports whether the process stops: each response must then close its connection.
func (r *Requests) Draining() bool { return r.draining.Load() }

// Rejecting reports whether the drain is over: requests that arrive now must be answered 503.
func (r *Requests) Rejecting() bool { return r.rejecting.Load() }

// ExitOnSIGTERM makes the process handle SIGTERM: the process waits at most 9 s for the requests in
// flight (see Drain), calls flush with a context of 500 ms, and exits with status 0, also with
// requests still in flight. A flush may ignore the context and delay the exit. ExitOnSIGTERM
// returns as soon as a signal would be handled, half a millisecond at the first use of package
// sigterm, and leaves a goroutine. Call ExitOnSIGTERM once per process. It never fails.
func (r *Requests) ExitOnSIGTERM(flush func(context.Context)) {
	sigterm.Listen()
	go func() {
		<-sigterm.Signals
		r.Drain(drainTimeout)
		ctx, cancel := context.WithTimeout(context.Background(), flushTimeout)
		defer cancel()
		flush(ctx)
		os.Exit(0)
	}()
}

// Drain returns when no request has been in flight or started for 80 to 100 ms, or after limit,
// exceeded by up to 20 ms: Drain checks every 20 ms and takes no lock. Drain does not report
// whether requests are still in flight. A request that was on its way when the signal came is still
// answered, with Connection: close. After the drain requests are rejected for good: the listener
// belongs to the framework and cannot be closed from here. With a limit of 0 or less Drain rejects
// at once.
func (r *Requests) Drain(limit time.Duration) {
	r.draining.Store(true)
	last, deadline := int64(-1), time.Now().Add(limit)
	for idle := 0; idle < drainIdleChecks && time.Now().Before(deadline); idle++ {
		if started := r.started.Load(); r.inFlight.Load() > 0 || started != last {
			idle, last = 0, started
		}
		time.Sleep(drainPollInterval)
	}
	r.rejecting.Store(true)
}
