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
	drainLimit = 9 * time.Second
	drainQuiet = 5                      // looks in a row at which nothing was going on
	drainStep  = 20 * time.Millisecond  // between two looks
	lastWords  = 500 * time.Millisecond // to the collector, after it
)

var (
	inFlight atomic.Int64
	entered  atomic.Int64 // requests, ever
	draining atomic.Bool  // an answer ends its connection
	refusing atomic.Bool  // nothing is begun any more
)

func enter() {
	inFlight.Add(1)
	entered.Add(1)
}

// leave ends a request. While draining its bytes are pushed out first, as the process may exit before the server does
// it.
func leave(w http.ResponseWriter) {
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
		drain(drainLimit)
		ctx, cancel := context.WithTimeout(context.Background(), lastWords)
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
	for quiet := 0; quiet < drainQuiet && time.Now().Before(deadline); quiet++ {
		if now := entered.Load(); inFlight.Load() > 0 || now != last {
			quiet, last = 0, now
		}
		time.Sleep(drainStep)
	}
	refusing.Store(true)
}
