package gateway

import (
	"net/http"
	"net/url"

	"melmastoon.ghasi.io/bff-consumer/shared/web"
)

// AllowLocalOrigins lets pages served from this machine, on any port, call next with cookies.
func AllowLocalOrigins(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		origin := r.Header.Get("Origin")
		if origin == "" || !isLocalOrigin(origin) {
			next.ServeHTTP(w, r)
			return
		}
		h := w.Header()
		h.Add("Vary", "Origin")
		web.AllowOrigin(h, origin)
		if web.AnswerPreflight(h, r) {
			w.WriteHeader(http.StatusNoContent)
			return
		}
		r.Header.Set("Sec-Fetch-Site", "same-origin") // as if it were our own page: functions refuse those of others
		next.ServeHTTP(w, r)
	})
}

func isLocalOrigin(origin string) bool {
	u, err := url.Parse(origin)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && isLoopbackHost(u.Hostname())
}
