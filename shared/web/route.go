package web

import (
	"net/http"
	"net/url"
	"strings"
)

// route is one parsed pattern. net/http's mux is not used: it redirects unclean paths and answers 404 and 405 in plain
// text.
type route struct {
	method   string
	path     string
	segments []string // of the path when it has variables: "hotels", "{propertyId}"; nil when it has none
}

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

// Method is the method of the function's pattern.
func (f *Function) Method() string { return f.route.method }

// Path is the path of the function's pattern, variables in braces.
func (f *Function) Path() string { return f.route.path }

// matches reports whether the path is the route's, and sets the path values of its variables on r; none of them is
// empty.
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

// allows reports whether the method is the route's; who may GET may HEAD.
func (rt *route) allows(method string) bool {
	return method == rt.method || rt.method == http.MethodGet && method == http.MethodHead
}

// allowHeader is the value of the Allow header.
func (rt *route) allowHeader() string {
	if rt.method == http.MethodGet {
		return "GET, HEAD"
	}
	return rt.method
}
