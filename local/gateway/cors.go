package gateway

import (
	"net/http"
	"net/netip"
	"net/url"
	"strings"
)

// What a page may send and read besides what every page may.
var (
	requestHeaders = strings.Join([]string{
		"Content-Type", "Accept-Language", "X-Currency", "X-Request-Id", "traceparent", "Idempotency-Key", "X-Idempotency-Key", "If-None-Match",
		"X-Recaptcha-Token", "X-Campaign-Source", "X-Campaign-Medium", "X-Campaign-Name", "X-Client-Screen", "X-Client-Timezone",
	}, ", ")
	responseHeaders = strings.Join([]string{
		"X-Request-Id", "X-Cache", "ETag", "Server-Timing", "Retry-After", "RateLimit", "RateLimit-Policy", "RateLimit-Limit",
		"RateLimit-Remaining", "RateLimit-Reset", "Idempotency-Replayed",
	}, ", ")
)

// AllowLocalPages lets pages served from this machine, on any port, call next with cookies.
func AllowLocalPages(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		origin := r.Header.Get("Origin")
		if origin == "" || !local(origin) {
			next.ServeHTTP(w, r)
			return
		}
		h := w.Header()
		h.Add("Vary", "Origin")
		h.Set("Access-Control-Allow-Origin", origin)
		h.Set("Access-Control-Allow-Credentials", "true")
		h.Set("Access-Control-Expose-Headers", responseHeaders)
		if r.Method == http.MethodOptions && r.Header.Get("Access-Control-Request-Method") != "" {
			h.Set("Access-Control-Allow-Methods", "GET, HEAD, POST, PUT, DELETE")
			h.Set("Access-Control-Allow-Headers", requestHeaders)
			h.Set("Access-Control-Max-Age", "600")
			w.WriteHeader(http.StatusNoContent)
			return
		}
		r.Header.Set("Sec-Fetch-Site", "same-origin") // as if it were our own page: functions refuse those of others
		next.ServeHTTP(w, r)
	})
}

func local(origin string) bool {
	u, err := url.Parse(origin)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" {
		return false
	}
	addr, err := netip.ParseAddr(u.Hostname())
	return u.Hostname() == "localhost" || err == nil && addr.IsLoopback()
}
