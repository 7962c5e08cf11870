// Package web owns the HTTP pipeline of every request: routing to the one function, deadline, panic
// recovery, request id, trace, size limits, response headers and the one log record. It never knows
// what a request is about.
package web

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"sync/atomic"
	"time"

	"melmastoon.ghasi.io/bff-consumer/shared/lifecycle"
	"melmastoon.ghasi.io/bff-consumer/shared/otlp"
)

// BasePath is the prefix of the paths of all public routes.
const BasePath = "/bff/consumer/v1"

// Budget is the time limit of a public request. In a process that is still warming up, the time
// starts at the end of the warm-up; see lifecycle.WarmUp.
const Budget = 2500 * time.Millisecond

// Handler answers a request, or returns an error before writing anything; problem.Write turns the
// error into the response.
type Handler func(w http.ResponseWriter, r *http.Request) error

// OpenFunc builds a function's handler from the environment. It parses and constructs. Dials to be
// done before the first request go to warmUp; the OpenFunc itself never dials. warmUp is nil, and
// dials nothing, in a process that is not about to listen for this function.
type OpenFunc func(ctx context.Context, warmUp *lifecycle.WarmUp) (Handler, error)

// Function is an entry point: the name of the deployment, a route and an OpenFunc. Until Open has
// succeeded, a request with the route's path and method gets a 500 problem. The methods are safe
// for concurrent use.
type Function struct {
	Name    string // "Search"
	Pattern string // "POST /bff/consumer/v1/search", "GET /bff/consumer/v1/hotels/{propertyId}"

	route    route
	open     OpenFunc
	budget   time.Duration // of one request
	maxBody  int64         // of one request, bytes
	internal bool          // called by Pub/Sub, the scheduler or an operator, never by a client
	state    atomic.Pointer[state]
	warmUp   *lifecycle.WarmUp // requests wait for its end; nil unless the process serves this function only
	requests lifecycle.Requests
}

// state is the result of opening a function; a request uses one state from beginning to end.
type state struct {
	handler Handler
	config  Config
	log     slog.Handler
	budget  time.Duration
	now     func() time.Time

	recorder *otlp.Recorder // nil: off
}

// New returns a closed public function with the time limit Budget and bodies of at most MaxBody.
// The pattern is a method, a space and a path, which may have {variables}; New panics on a pattern
// without a method or without a path that starts with "/". It calls open in Function.Open only. CPU
// only.
func New(name, pattern string, open OpenFunc) *Function {
	return &Function{Name: name, Pattern: pattern, route: parsePattern(pattern), open: open, budget: Budget, maxBody: MaxBody}
}

// NewInternal is New for an internal endpoint: a request may take as long as budget and be as large
// as the largest Pub/Sub message, 14 MiB. The handler decides how much of the body to keep; see
// ReadPrefix. NewInternal panics when budget is not positive or New panics. It does not restrict
// callers: the platform or the handler does.
func NewInternal(name, pattern string, budget time.Duration, open OpenFunc) *Function {
	if budget <= 0 {
		panic("web: function " + name + " has no time budget")
	}
	f := New(name, pattern, open)
	f.budget, f.maxBody, f.internal = budget, MaxPushBody, true
	return f
}

// Open builds the function from the environment; from then on requests reach the handler. Log
// records go to stdout. Open calls the OpenFunc without a warm-up, so nothing is dialled. Call Open
// again after the environment has changed: requests in flight keep the earlier handler, and the
// connections of the earlier handler stay open.
//
// The error joins the first wrong setting of the pipeline, the first wrong setting of the telemetry
// and the error of the OpenFunc. After an error the function stays as it was, closed or with the
// earlier handler.
func (f *Function) Open(ctx context.Context) error { return f.OpenWithLog(ctx, os.Stdout) }

// OpenWithLog is Open with another destination for the log records; each record is a single Write,
// and the requests of this opening write one at a time. OpenWithLog dials nothing and returns the
// errors of Open; after an error the function stays as it was. A slow log delays the end of
// requests; an error of log loses the record without notice.
func (f *Function) OpenWithLog(ctx context.Context, log io.Writer) error {
	return f.openAll(ctx, log, nil)
}

func (f *Function) openAll(ctx context.Context, log io.Writer, warmUp *lifecycle.WarmUp) error {
	config, err := configFromEnv()
	recorder, telemetryErr := otlp.Open(f.Name)
	err = errors.Join(err, telemetryErr)
	handler, openErr := f.open(ctx, warmUp)
	switch {
	case err != nil && openErr != nil:
		return fmt.Errorf("web: open %s: %w; %w", f.Name, err, openErr)
	case err != nil:
		return fmt.Errorf("web: open %s: %w", f.Name, err)
	case openErr != nil:
		return fmt.Errorf("web: open %s: %w", f.Name, openErr)
	}
	f.state.Store(&state{
		handler: handler, config: config, log: newLogHandler(log, config), budget: f.budget, now: time.Now, recorder: recorder,
	})
	return nil
}

// Flush exports the remaining telemetry, within the deadline of ctx and usually within 4 s: it
// waits for a running export and starts a last one, each of at most 2 s. Without telemetry, or
// before Open, it does nothing. Failures are lost: after a failed export, and during the pause that
// follows it, the data is not sent. Call Flush before the process ends.
func (f *Function) Flush(ctx context.Context) {
	if s := f.state.Load(); s != nil {
		s.recorder.Close(ctx)
	}
}
