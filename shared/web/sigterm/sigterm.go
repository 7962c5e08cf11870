// Package sigterm listens for SIGTERM from the beginning of a function's process. To listen takes a thread, which is half a
// millisecond of a start; a package that imports next to nothing is initialised early, so it passes beside the
// initialisation of the others. It decides nothing: package web does what is to be done.
package sigterm

import (
	"os"
	"os/signal"
	"sync"
	"syscall"
)

// Signals delivers SIGTERM, once Listen has returned.
var Signals = make(chan os.Signal, 1)

// Listen returns when SIGTERM does not end the process any more but is delivered. Safe for concurrent use.
var Listen = sync.OnceFunc(func() { signal.Notify(Signals, syscall.SIGTERM) })

func init() {
	if os.Getenv("FUNCTION_TARGET") != "" {
		go Listen()
	}
}
