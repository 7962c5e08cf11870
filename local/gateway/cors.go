package gateway

import (
	"net/http"
	"net/url"

	"melmastoon.ghasi.io/bff-consumer/shared/web"
)

// AllowLocalOrigins lets pages of this machine, on any port, call next with cookies. It answers
// their preflight requests itself and marks their other requests as same-origin.
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
		// otherwise the functions reject the request as cross-origin
		r.Header.Set("Sec-Fetch-Site", "same-origin")
		next.ServeHTTP(w, r)
	})
}

func isLocalOrigin(origin string) bool {
	u, err := url.Parse(origin)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && isLoopbackHost(u.Hostname())
}
