package gateway

import (
	"net/http"
	"net/netip"
	"net/url"
	"strings"

	"melmastoon.ghasi.io/bff-consumer/shared/problem"
)

// RequireLocalHost rejects requests whose Host is neither a loopback address nor localhost. It
// prevents DNS rebinding: a foreign page whose host name resolves to 127.0.0.1 could read every
// response.
func RequireLocalHost(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if u := (url.URL{Host: r.Host}); !isLoopbackHost(u.Hostname()) {
			WriteProblem(w, r, problem.New(problem.CallerNotAllowed, "The local system accepts requests to 127.0.0.1 and localhost only.", nil))
			return
		}
		next.ServeHTTP(w, r)
	})
}

// isLoopbackHost reports whether a host is a loopback address, localhost or a name below
// .localhost. It asks no resolver.
func isLoopbackHost(host string) bool {
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.IsLoopback() || host == "localhost" || strings.HasSuffix(host, ".localhost")
}

var crossOrigin = http.NewCrossOriginProtection()

// RejectCrossOrigin rejects state-changing requests from pages of other origins. AllowLocalOrigins
// must run before it to mark pages of this machine as same-origin. Clients that send neither Origin
// nor Sec-Fetch-Site, such as curl, pass.
func RejectCrossOrigin(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := crossOrigin.Check(r); err != nil {
			WriteProblem(w, r, problem.New(problem.CallerNotAllowed, "Pages of other machines cannot change the local system.", err))
			return
		}
		next.ServeHTTP(w, r)
	})
}
