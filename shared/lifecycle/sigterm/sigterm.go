// Package sigterm starts to listen for SIGTERM as early as possible in a function's process.
// Listening starts an operating system thread, which takes half a millisecond. This package imports
// next to nothing, so Go initialises it early and the thread starts while other packages
// initialise. It only delivers the signal; package lifecycle handles it.
package sigterm

import (
	"os"
	"os/signal"
	"sync"
	"syscall"
)

// Signals delivers SIGTERM once Listen has returned.
var Signals = make(chan os.Signal, 1)

// Listen returns when SIGTERM is delivered to Signals and no longer ends the process. Only the
// first call does work, half a millisecond; concurrent callers wait for the first. Signals keeps a
// single signal until a reader takes the signal, and drops further signals. Listen never fails.
// Safe for concurrent use.
var Listen = sync.OnceFunc(func() { signal.Notify(Signals, syscall.SIGTERM) })

func init() {
	if os.Getenv("FUNCTION_TARGET") != "" {
		go Listen()
	}
}
