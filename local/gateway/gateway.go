// Package gateway owns the front of the local system, where the platform has its API gateway: it sends each request to
// the function that api/consumer.openapi.yaml names, and lets pages of this machine call it. It never looks into a
// body.
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

// route is one operation with the function that serves it.
type route struct {
	Operation
	segments []string
	function http.Handler
}

// New routes each operation to the function of its name. It fails when the document and the functions disagree: an
// operation that nobody serves, a function on another route than the document's, or one below base, where all paths of
// the document are, that it leaves out.
func New(base string, operations []Operation, functions []*web.Function) (http.Handler, error) {
	var routes []route
	served := map[string]bool{}
	var wrong []string
	for _, op := range operations {
		at := slices.IndexFunc(functions, func(f *web.Function) bool { return f.Name == op.Function })
		if at < 0 {
			wrong = append(wrong, fmt.Sprintf("%s %s: no function is called %s", op.Method, op.Path, op.Function))
			continue
		}
		f := functions[at]
		if f.Method() != op.Method || !slices.Equal(pathShape(f.Path()), pathShape(op.Path)) {
			wrong = append(wrong, fmt.Sprintf("%s %s: the function %s is at %s", op.Method, op.Path, f.Name, f.Pattern))
			continue
		}
		served[f.Name] = true
		routes = append(routes, route{op, pathShape(op.Path), f})
	}
	for _, f := range functions {
		if !served[f.Name] && strings.HasPrefix(f.Path(), base+"/") {
			wrong = append(wrong, fmt.Sprintf("%s: the document has no such route", f.Pattern))
		}
	}
	if len(wrong) > 0 {
		return nil, fmt.Errorf("gateway: the API document and the functions disagree:\n  %s", strings.Join(wrong, "\n  "))
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { serve(routes, w, r) }), nil
}

// serve finds the function; what is no route is refused as the gateway of the platform would, before any function runs.
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

// addForwardedFor adds who called to X-Forwarded-For, as the gateway of the platform does. The functions believe that entry, the
// last, and none that came with the request. Who calls from this machine may stand in for another, as a proxy would: so
// limits by address and search engines can be tried without their addresses.
func addForwardedFor(r *http.Request) {
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil || peer.Addr().Unmap().IsLoopback() && r.Header.Get("X-Forwarded-For") != "" {
		return
	}
	r.Header.Add("X-Forwarded-For", peer.Addr().Unmap().String())
}

// pathShape is a path by segments, with every variable the same: what it is called differs between documents.
func pathShape(path string) []string {
	segments := strings.Split(path, "/")
	for i, s := range segments {
		if strings.HasPrefix(s, "{") {
			segments[i] = "{}"
		}
	}
	return segments
}

func matchPath(segments, path []string) bool {
	return slices.EqualFunc(segments, path, func(want, got string) bool { return want == got || want == "{}" && got != "" })
}

// WriteProblem answers a request that reaches no function with a problem.
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
