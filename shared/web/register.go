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
// Call it from init functions only. See New for the pattern.
//
// When FUNCTION_TARGET is the function's name, Register opens it at once with a warm-up, and the
// process drains and exits 0 on SIGTERM. An error of opening ends the process with status 1, so
// that a mistake in the configuration fails the rollout and not a request. In any other process the
// function is closed until Function.Open.
func Register(name, pattern string, open OpenFunc) http.HandlerFunc {
	return register(New(name, pattern, open))
}

// RegisterInternal is Register for an internal endpoint; see NewInternal.
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

// Functions returns the registered functions of this binary, sorted by name.
func Functions() []*Function { return registered.sorted() }

func (r registry) sorted() []*Function {
	list := make([]*Function, 0, len(r))
	for _, f := range r {
		list = append(list, f)
	}
	slices.SortFunc(list, func(a, b *Function) int { return strings.Compare(a.Name, b.Name) })
	return list
}
