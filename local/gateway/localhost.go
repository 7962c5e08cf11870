package gateway

import (
	"net/http"
	"net/netip"
	"net/url"
	"strings"

	"melmastoon.ghasi.io/bff-consumer/shared/problem"
)

// RequireLocalHost refuses who asks for another name than this machine's: a page of elsewhere can have its own name point here, and would then
// read every answer as if it were its own.
func RequireLocalHost(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if u := (url.URL{Host: r.Host}); !isLoopbackHost(u.Hostname()) {
			WriteProblem(w, r, problem.New(problem.CallerNotAllowed, "The local system answers to 127.0.0.1 and localhost only.", nil))
			return
		}
		next.ServeHTTP(w, r)
	})
}

// isLoopbackHost reports whether a host is this machine for certain, whatever names mean elsewhere.
func isLoopbackHost(host string) bool {
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.IsLoopback() || host == "localhost" || strings.HasSuffix(host, ".localhost")
}

var crossOrigin = http.NewCrossOriginProtection()

// RejectCrossOrigin refuses what pages of elsewhere send to be done. AllowLocalPages comes before it and vouches for those of this machine;
// what is no browser says nothing of where it is and passes.
func RejectCrossOrigin(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := crossOrigin.Check(r); err != nil {
			WriteProblem(w, r, problem.New(problem.CallerNotAllowed, "Pages of other machines change nothing here.", err))
			return
		}
		next.ServeHTTP(w, r)
	})
}
