package web

import (
	"context"
	"net/http"
	"os"
	"sync/atomic"
	"time"

	"melmastoon.ghasi.io/bff-consumer/shared/web/sigterm"
)

// The platform sends SIGTERM ten seconds before it ends an instance, and the framework that owns the listener would die
// at once.
const (
	drainTimeout      = 9 * time.Second
	drainIdleChecks   = 5                      // looks in a row at which nothing was going on
	drainPollInterval = 20 * time.Millisecond  // between two looks
	flushTimeout      = 500 * time.Millisecond // to the collector, after it
)

var (
	inFlight        atomic.Int64
	requestsStarted atomic.Int64 // requests, ever
	draining        atomic.Bool  // an answer ends its connection
	rejecting       atomic.Bool  // nothing is begun any more
)

func beginRequest() {
	inFlight.Add(1)
	requestsStarted.Add(1)
}

// endRequest ends a request. While draining its bytes are pushed out first, as the process may exit before the server does
// it.
func endRequest(w http.ResponseWriter) {
	if draining.Load() {
		_ = http.NewResponseController(w).Flush() // a connection that is gone has nothing to lose
	}
	inFlight.Add(-1)
}

// drainOnSignal makes the process finish what is in flight within drainLimit, send what was measured, and exit 0 on
// SIGTERM. It returns when a signal would be heard.
func drainOnSignal(f *Function) {
	sigterm.Listen()
	go func() {
		<-sigterm.Signals
		drain(drainTimeout)
		ctx, cancel := context.WithTimeout(context.Background(), flushTimeout)
		defer cancel()
		f.Flush(ctx)
		os.Exit(0)
	}()
}

// drain returns when nothing has been going on for a tenth of a second, or the limit is over. A request may have been on
// its way when the signal overtook it: it is answered like any other, with Connection: close. After drain they are
// answered 503: the listener belongs to the framework and cannot be closed from here.
func drain(limit time.Duration) {
	draining.Store(true)
	last, deadline := int64(-1), time.Now().Add(limit)
	for quiet := 0; quiet < drainIdleChecks && time.Now().Before(deadline); quiet++ {
		if now := requestsStarted.Load(); inFlight.Load() > 0 || now != last {
			quiet, last = 0, now
		}
		time.Sleep(drainPollInterval)
	}
	rejecting.Store(true)
}
