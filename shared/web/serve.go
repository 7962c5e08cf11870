package web

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"
	"time"

	"melmastoon.ghasi.io/bff-consumer/shared/problem"
)

// The limits of a request, in bytes.
const (
	MaxBody     = 64 << 10
	MaxHeader   = 16 << 10 // request line and header fields
	MaxPushBody = 14 << 20 // of an internal endpoint: a Pub/Sub message of 10 MB in base64 and its wrapper
)

// ServeHTTP is the whole pipeline: request id and trace, deadline, size limits, the handler, the
// problem response, the log record. In a process that is still warming up, the request first waits
// for the warm-up, at most 500 ms; see lifecycle.WarmUp. The deadline of the request's context is
// Budget or the budget of NewInternal; ServeHTTP waits for a handler that ignores the deadline. At
// most once a second the response also waits up to 50 ms, on an internal endpoint up to 1 s, for
// the export of telemetry. Log records are written one at a time. The pipeline itself uses no
// store.
//
// Without calling the handler it answers, in this order: 503 after the drain, 413 for header fields
// over 16 KiB, 403 for a request that bypassed the edge, 404 for another path, 204 for a preflight
// of an allowed origin, 405 for another method, 403 for a mutation from a foreign page. An error of
// the handler becomes the problem of problem.FromError: 504 after the deadline, 500 for unknown
// errors, for panics and before Open; a client that hung up is logged as 499. An error after the
// start of the response is logged only, and a panic then cuts the connection by panicking with
// http.ErrAbortHandler.
func (f *Function) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.requests.Begin()
	defer f.endRequest(w)
	if f.warmUp != nil {
		<-f.warmUp.Done()
	}
	s := f.state.Load()
	if s == nil {
		s = closedState
	}
	c := newCall(s, w, r)
	ctx, cancel := context.WithTimeout(r.Context(), s.budget)
	defer cancel()
	if s.recorder != nil {
		ctx = c.startSpan(ctx, s.recorder, f, r)
	}
	r = r.WithContext(context.WithValue(ctx, callKey{}, c))
	if r.Body != nil && r.Body != http.NoBody {
		r.Body = http.MaxBytesReader(w, r.Body, f.maxBody)
	}
	err := f.handle(s, c, r)
	started := c.out.started()
	switch {
	case started:
	case err == nil:
		c.out.WriteHeader(http.StatusOK)
	case errors.Is(err, context.Canceled) && errors.Is(ctx.Err(), context.Canceled):
		c.out.WriteHeader(statusClientClosedRequest)
	default:
		problem.Write(&c.out, problem.Occurrence{Instance: r.URL.EscapedPath(), RequestID: c.ID, TraceID: c.TraceID}, err)
	}
	f.logRequest(s, c, r, err)
	if _, panicked := errors.AsType[*panicError](err); panicked && started {
		// part of the response is sent: cut the connection, so that the client notices
		panic(http.ErrAbortHandler)
	}
}

// endRequest ends a request. While the process drains, it first sends the response to the client:
// the process may exit before the server does it.
func (f *Function) endRequest(w http.ResponseWriter) {
	if f.requests.Draining() {
		// fails only when the connection is gone, and then nothing is lost
		_ = http.NewResponseController(w).Flush()
	}
	f.requests.End()
}

// handle calls the handler, or returns the problem of a request that the handler must not see. It
// turns a panic into a panicError.
func (f *Function) handle(s *state, c *Call, r *http.Request) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &panicError{value: p, stack: debug.Stack()}
		}
	}()
	if f.requests.Draining() {
		c.out.Header().Set("Connection", "close")
	}
	switch {
	case f.requests.Rejecting():
		return problem.New(problem.UpstreamUnavailable, "This instance is stopping. Please try again.", nil).WithRetryAfter(time.Second)
	case headersTooLarge(r):
		return problem.New(problem.PayloadTooLarge, "The header fields must be at most 16 KiB together.", nil)
	case s.config.bypassesEdge(r):
		return problem.New(problem.CallerNotAllowed, "This address is not for guests.", nil)
	case !f.route.matches(r):
		return problem.New(problem.ResourceNotFound, "There is nothing at this address.", nil)
	case s.config.handleCORS(c.out.Header(), r):
		c.out.WriteHeader(http.StatusNoContent)
		return nil
	case !f.route.allows(r.Method):
		c.out.Header().Set("Allow", f.route.allowHeader())
		return problem.New(problem.MethodNotAllowed, "See Allow for the methods of this address.", nil)
	case s.config.crossOrigin(r):
		return problem.New(problem.CallerNotAllowed, "Pages of another origin may not do this.", nil)
	}
	return s.handler(&c.out, r)
}

// statusClientClosedRequest is the logged status of a request whose client hung up before the
// response.
const statusClientClosedRequest = 499

// closedState answers every request with an error, before the function has been opened.
var closedState = &state{
	handler: func(http.ResponseWriter, *http.Request) error { return errors.New("web: the function is not open") },
	log:     newLogHandler(stdoutWriter{}, Config{}),
	budget:  Budget,
	now:     time.Now,
}

// panicError is a recovered panic. Its value and stack go to the log, never to the client.
type panicError struct {
	value any
	stack []byte
}

func (p *panicError) Error() string { return fmt.Sprintf("panic: %v", p.value) }

// headersTooLarge reports whether request line and header fields exceed MaxHeader.
func headersTooLarge(r *http.Request) bool {
	n := len(r.RequestURI) + len(r.Host)
	for name, values := range r.Header {
		for _, v := range values {
			n += len(name) + len(v) + len(": \r\n")
		}
	}
	return n > MaxHeader
}
