package web

import (
	"net/http"
	"net/url"
	"strings"
)

// route is a parsed pattern. The pipeline does not use http.ServeMux, because it redirects unclean
// paths and answers 404 and 405 in plain text.
type route struct {
	method   string
	path     string
	segments []string // of a path with variables: "hotels", "{propertyId}"; nil without variables
}

// parsePattern panics on a pattern other than a method, a space and a path: the pattern is a
// constant of the program.
func parsePattern(pattern string) route {
	method, path, ok := strings.Cut(pattern, " ")
	if !ok || method == "" || !strings.HasPrefix(path, "/") {
		panic("web: a pattern is a method and a path, not " + pattern)
	}
	rt := route{method: method, path: path}
	if strings.Contains(path, "{") {
		rt.segments = strings.Split(path[1:], "/")
	}
	return rt
}

// Method returns the method of the function's pattern.
func (f *Function) Method() string { return f.route.method }

// Path returns the path of the function's pattern, with variables in braces.
func (f *Function) Path() string { return f.route.path }

// matches reports whether the request's path is the route's, and sets the variables as path values
// of r. A variable is never empty.
func (rt *route) matches(r *http.Request) bool {
	if rt.segments == nil {
		return r.URL.Path == rt.path
	}
	rest, ok := strings.CutPrefix(r.URL.EscapedPath(), "/")
	for i, want := range rt.segments {
		var got string
		last := i == len(rt.segments)-1
		if got, rest, _ = strings.Cut(rest, "/"); !ok || got == "" || last && rest != "" {
			return false
		}
		if want[0] != '{' {
			if got != want {
				return false
			}
			continue
		}
		value, err := url.PathUnescape(got)
		if err != nil {
			return false
		}
		r.SetPathValue(want[1:len(want)-1], value)
	}
	return true
}

// allows reports whether the route accepts the method. A GET route also accepts HEAD.
func (rt *route) allows(method string) bool {
	return method == rt.method || rt.method == http.MethodGet && method == http.MethodHead
}

// allowHeader returns the value of the Allow header.
func (rt *route) allowHeader() string {
	if rt.method == http.MethodGet {
		return "GET, HEAD"
	}
	return rt.method
}
