// Package gateway owns the local replacement of the platform's API gateway. It routes each request
// to the function that the OpenAPI document names, accepts requests to this machine's own names
// only, and lets pages of this machine call the API. It never reads a body.
package gateway

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"

	"melmastoon.ghasi.io/bff-consumer/shared/id"
	"melmastoon.ghasi.io/bff-consumer/shared/problem"
	"melmastoon.ghasi.io/bff-consumer/shared/web"
)

// route is an operation with the function that serves it.
type route struct {
	Operation
	segments []string
	function http.Handler
}

// New returns a handler that routes each operation to the function of the same name. base is the
// path prefix of all operations. New returns an error that lists every difference between the
// document and the functions: an operation without a function, a function with another method or
// path, and a function below base without an operation. The handler is safe for concurrent use.
func New(base string, operations []Operation, functions []*web.Function) (http.Handler, error) {
	var routes []route
	served := map[string]bool{}
	var wrong []string
	for _, op := range operations {
		at := slices.IndexFunc(functions, func(f *web.Function) bool { return f.Name == op.Function })
		if at < 0 {
			wrong = append(wrong, fmt.Sprintf("%s %s: no function has the name %s", op.Method, op.Path, op.Function))
			continue
		}
		f := functions[at]
		if f.Method() != op.Method || !slices.Equal(pathShape(f.Path()), pathShape(op.Path)) {
			wrong = append(wrong, fmt.Sprintf("%s %s: the function %s serves %s", op.Method, op.Path, f.Name, f.Pattern))
			continue
		}
		served[f.Name] = true
		routes = append(routes, route{op, pathShape(op.Path), f})
	}
	for _, f := range functions {
		if !served[f.Name] && strings.HasPrefix(f.Path(), base+"/") {
			wrong = append(wrong, fmt.Sprintf("%s: the document has no such operation", f.Pattern))
		}
	}
	if len(wrong) > 0 {
		return nil, fmt.Errorf("gateway: the API document and the functions disagree:\n  %s", strings.Join(wrong, "\n  "))
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { serve(routes, w, r) }), nil
}

// serve calls the function of the request. Like the platform's gateway it responds to other
// requests itself: 404 for an unknown path, 405 for an unknown method of a known path.
func serve(routes []route, w http.ResponseWriter, r *http.Request) {
	var allowed []string
	path := strings.Split(r.URL.EscapedPath(), "/")
	for _, rt := range routes {
		if !matchPath(rt.segments, path) {
			continue
		}
		if r.Method == rt.Method || r.Method == http.MethodHead && rt.Method == http.MethodGet {
			addForwardedFor(r)
			rt.function.ServeHTTP(w, r)
			return
		}
		allowed = append(allowed, rt.Method)
		if rt.Method == http.MethodGet {
			allowed = append(allowed, http.MethodHead)
		}
	}
	if allowed == nil {
		WriteProblem(w, r, problem.New(problem.ResourceNotFound, "There is nothing at this address.", nil))
		return
	}
	w.Header().Set("Allow", strings.Join(allowed, ", "))
	WriteProblem(w, r, problem.New(problem.MethodNotAllowed, "See Allow for the methods of this address.", nil))
}

// addForwardedFor appends the client address to X-Forwarded-For, as the platform's gateway does.
// The functions trust the last entry only. A client on this machine may set the header itself; then
// addForwardedFor leaves the header unchanged, so a developer can test limits by address and the
// policy for search engines from any address.
func addForwardedFor(r *http.Request) {
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil || peer.Addr().Unmap().IsLoopback() && r.Header.Get("X-Forwarded-For") != "" {
		return
	}
	r.Header.Add("X-Forwarded-For", peer.Addr().Unmap().String())
}

// pathShape splits a path into segments and replaces each variable by {}, because documents and
// functions name variables differently.
func pathShape(path string) []string {
	segments := strings.Split(path, "/")
	for i, s := range segments {
		if strings.HasPrefix(s, "{") {
			segments[i] = "{}"
		}
	}
	return segments
}

// matchPath reports whether a request path matches; a variable matches any non-empty segment.
func matchPath(segments, path []string) bool {
	return slices.EqualFunc(segments, path, func(want, got string) bool { return want == got || want == "{}" && got != "" })
}

// WriteProblem writes err as a problem response, with a new request id and trace id. Use it for
// requests that reach no function.
func WriteProblem(w http.ResponseWriter, r *http.Request, err error) {
	var trace [16]byte
	rand.Read(trace[:])
	where := problem.Occurrence{
		Instance:  r.URL.EscapedPath(),
		RequestID: id.New(id.Request, time.Now()),
		TraceID:   hex.EncodeToString(trace[:]),
	}
	w.Header().Set("X-Request-Id", where.RequestID)
	problem.Write(w, where, err)
}
