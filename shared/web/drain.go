package web

import (
	"context"
	"net/http"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"
)

// The platform sends SIGTERM ten seconds before it ends an instance, and the framework that owns the listener would die
// at once.
const (
	drainLimit = 9 * time.Second
	lastWords  = 500 * time.Millisecond // to the collector, after it
)

var (
	inFlight atomic.Int64
	draining atomic.Bool
)

// leave ends a request. While draining its bytes are pushed out first, as the process may exit before the server does
// it.
func leave(w http.ResponseWriter) {
	if draining.Load() {
		_ = http.NewResponseController(w).Flush() // a connection that is gone has nothing to lose
	}
	inFlight.Add(-1)
}

// drainOnSignal makes the process stop accepting, finish what is in flight within drainLimit, send what was measured,
// and exit 0 on SIGTERM.
func drainOnSignal(f *Function) {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM)
	go func() {
		<-signals
		drain(drainLimit)
		ctx, cancel := context.WithTimeout(context.Background(), lastWords)
		defer cancel()
		f.Flush(ctx)
		os.Exit(0)
	}()
}

// drain refuses new requests and returns when none is in flight any more, or the limit is over. New ones are answered
// 503 with Connection: close: the listener belongs to the framework and cannot be closed from here.
func drain(limit time.Duration) {
	draining.Store(true)
	const step = 20 * time.Millisecond
	for deadline := time.Now().Add(limit); inFlight.Load() > 0 && time.Now().Before(deadline); {
		time.Sleep(step)
	}
	// A request that ended just before draining began may still have its last bytes in the server's buffer.
	time.Sleep(2 * step)
}
