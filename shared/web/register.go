package web

import (
	"context"
	"log/slog"
	"net/http"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"melmastoon.ghasi.io/bff-consumer/shared/lifecycle"
)

// registry holds functions by name.
type registry map[string]*Function

// registered holds every function of the binary. Only init functions write it, through Register and
// RegisterInternal; everything else reads it.
var registered = registry{}

// Register makes a public function known to Functions and returns its handler, for functions.HTTP.
// Call Register from init functions only: Register is not safe for concurrent use, and panics on a
// name already registered and on patterns rejected by New. See New for the pattern.
//
// When FUNCTION_TARGET is the function's name, Register opens the function at once with a warm-up
// and does not wait for the warm-up's dials. Register then sets the garbage collector to 800 %
// unless GOGC is set, replaces slog's default logger, and makes the process drain and exit 0 on
// SIGTERM. An error of opening is logged and ends the process with status 1, so that a mistake in
// the configuration fails the rollout and not a request. In any other process Register dials and
// opens nothing, and a request for the function gets a 500 problem until Function.Open.
func Register(name, pattern string, open OpenFunc) http.HandlerFunc {
	return register(New(name, pattern, open))
}

// RegisterInternal is Register for an internal endpoint: a request may take as long as budget and
// be as large as 14 MiB; see NewInternal. RegisterInternal opens the function if FUNCTION_TARGET
// names it, exits with status 1 if that fails, and panics like Register and NewInternal. Call it
// from init functions only.
func RegisterInternal(name, pattern string, budget time.Duration, open OpenFunc) http.HandlerFunc {
	return register(NewInternal(name, pattern, budget, open))
}

func register(f *Function) http.HandlerFunc {
	registered.add(f)
	if os.Getenv("FUNCTION_TARGET") == f.Name {
		f.start()
	}
	return f.ServeHTTP
}

// add panics when two init functions use one name.
func (r registry) add(f *Function) {
	if r[f.Name] != nil {
		panic("web: function " + f.Name + " registered twice")
	}
	r[f.Name] = f
}

// start opens the function for a process that is about to listen for it, or exits with status 1.
func (f *Function) start() {
	f.warmUp = lifecycle.NewWarmUp()
	if err := f.openAll(context.Background(), os.Stdout, f.warmUp); err != nil {
		slog.New(newLogHandler(os.Stderr, Config{})).Error("cannot start "+f.Name, "function", f.Name, "err", err.Error())
		os.Exit(1)
	}
	if os.Getenv("GOGC") == "" {
		// A function keeps a few megabytes alive, so by default the collector would run a hundred
		// times a second.
		debug.SetGCPercent(800)
	}
	slog.SetDefault(slog.New(f.state.Load().log))
	go f.warmUp.Wait(slog.With("function", f.Name))
	f.requests.ExitOnSIGTERM(f.Flush) // before the process listens: no request may be cut off
}

// Functions returns the registered functions of this binary, sorted by name, in a new slice, and
// never fails; without functions the slice is empty. CPU only.
func Functions() []*Function { return registered.sorted() }

func (r registry) sorted() []*Function {
	list := make([]*Function, 0, len(r))
	for _, f := range r {
		list = append(list, f)
	}
	slices.SortFunc(list, func(a, b *Function) int { return strings.Compare(a.Name, b.Name) })
	return list
}
