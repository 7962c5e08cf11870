// Package web owns the way of every request: routing to the one function, deadline, recovery, identity, limits, the
// answer's headers and its one log record. It never knows what a request is about.
package web

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"melmastoon.ghasi.io/bff-consumer/shared/otlp"
)

// BasePath is the path all public routes begin with.
const BasePath = "/bff/consumer/v1"

// Budget is how long a request may take in all, from when its process has reached its stores: see Ahead.
const Budget = 2500 * time.Millisecond

// Handler answers a request, or returns an error before it has written anything; problem.Write turns that into the
// answer.
type Handler func(w http.ResponseWriter, r *http.Request) error

// Function is one entry point: a name to deploy it by, a route, and the way to open it. Its methods are safe for
// concurrent use.
type Function struct {
	Name    string // "Search"
	Pattern string // "POST /bff/consumer/v1/search", "GET /bff/consumer/v1/hotels/{propertyId}"

	route    route
	open     func(context.Context) (Handler, error)
	budget   time.Duration // of one request
	maxBody  int64         // of one request, bytes
	internal bool          // nobody waits for its answers but a broker
	state    atomic.Pointer[state]
	warmUp   *warmUpGroup // what the first requests wait for; nil: the process is not for this function
}

// state is what opening leaves behind; a request sees one state from beginning to end.
type state struct {
	handler Handler
	config  Config
	log     slog.Handler
	budget  time.Duration
	now     func() time.Time

	recorder *otlp.Recorder // nil: off
}

// registry holds every function of the binary. It is written by init functions and read after them.
var registry = map[string]*Function{}

// Register records a function and returns its door, for functions.HTTP(name, …). The pattern is a method and a path with
// {variables}.
//
// When FUNCTION_TARGET is the function's name it is opened at once: a mistake in the configuration ends the process
// with status 1, so that it fails the rollout and not a guest. What it asks for by Ahead is called. On SIGTERM such a
// process finishes what it began and exits 0. In any other process the function is closed until Function.Open is called.
func Register(name, pattern string, open func(context.Context) (Handler, error)) http.HandlerFunc {
	return register(&Function{Name: name, Pattern: pattern, open: open, budget: Budget, maxBody: MaxBody})
}

// RegisterInternal is Open for a private door that no guest waits at: its requests may take as long as budget says, and
// be as large as the broker's largest message. What of that is kept is for the handler to say; see Read.
func RegisterInternal(name, pattern string, budget time.Duration, open func(context.Context) (Handler, error)) http.HandlerFunc {
	if budget <= 0 {
		panic("web: function " + name + " has no time")
	}
	return register(&Function{Name: name, Pattern: pattern, open: open, budget: budget, maxBody: MaxPushBody, internal: true})
}

func register(f *Function) http.HandlerFunc {
	name := f.Name
	f.route = parsePattern(f.Pattern)
	if registry[name] != nil {
		panic("web: function " + name + " registered twice") // two init functions disagree; no request is ever at stake
	}
	registry[name] = f
	if os.Getenv("FUNCTION_TARGET") == name {
		within, cancel := context.WithTimeout(context.Background(), warmUpTimeout)
		f.warmUp = &warmUpGroup{ctx: within, cancel: cancel}
		if err := f.Open(context.WithValue(context.Background(), warmUpKey{}, f.warmUp)); err != nil {
			slog.New(newLogHandler(os.Stderr, Config{})).Error("cannot start "+name, "function", name, "err", err.Error())
			os.Exit(1)
		}
		if os.Getenv("GOGC") == "" {
			// A function keeps a few megabytes alive, so by default the collector would run a hundred times a second.
			debug.SetGCPercent(800)
		}
		slog.SetDefault(slog.New(f.state.Load().log))
		go f.warmUp.wait(slog.With("function", name))
		drainOnSignal(f) // before anybody can be let in, who would be cut off
	}
	return f.ServeHTTP
}

// Functions returns the functions of this binary by name.
func Functions() []*Function {
	list := make([]*Function, 0, len(registry))
	for _, f := range registry {
		list = append(list, f)
	}
	slices.SortFunc(list, func(a, b *Function) int { return strings.Compare(a.Name, b.Name) })
	return list
}

// Open builds the function from the environment and lets it serve; its log records go to stdout. It may be called
// again, when the environment has changed. The error names every setting that is wrong.
func (f *Function) Open(ctx context.Context) error { return f.OpenWithLog(ctx, os.Stdout) }

// OpenWithLog is Open with another place for the log records; each is one Write.
func (f *Function) OpenWithLog(ctx context.Context, log io.Writer) error {
	config, err := configFromEnv()
	measured, telemetryErr := otlp.Open(f.Name)
	err = errors.Join(err, telemetryErr)
	handler, openErr := f.open(ctx)
	switch {
	case err != nil && openErr != nil:
		return fmt.Errorf("web: open %s: %w; %w", f.Name, err, openErr)
	case err != nil:
		return fmt.Errorf("web: open %s: %w", f.Name, err)
	case openErr != nil:
		return fmt.Errorf("web: open %s: %w", f.Name, openErr)
	}
	f.state.Store(&state{
		handler: handler, config: config, log: newLogHandler(log, config), budget: f.budget, now: time.Now, recorder: measured,
	})
	return nil
}

// Flush sends what was measured and not yet sent, for a process that is about to end.
func (f *Function) Flush(ctx context.Context) {
	if s := f.state.Load(); s != nil {
		s.recorder.Close(ctx)
	}
}
