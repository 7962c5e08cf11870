package web

import (
	"net/http"
	"slices"
	"strings"
)

// Request headers for pages of another origin to send, and response headers for them to read, in
// addition to the headers that browsers always allow.
var (
	corsAllowedHeaders = strings.Join([]string{
		"Content-Type", "Accept-Language", "X-Currency", "X-Request-Id", "traceparent", "Idempotency-Key", "X-Idempotency-Key", "If-None-Match",
		"X-Recaptcha-Token", "X-Campaign-Source", "X-Campaign-Medium", "X-Campaign-Name", "X-Client-Screen", "X-Client-Timezone",
	}, ", ")
	corsExposedHeaders = strings.Join([]string{
		"X-Request-Id", "X-Cache", "ETag", "Server-Timing", "Retry-After", "RateLimit", "RateLimit-Policy", "RateLimit-Limit",
		"RateLimit-Remaining", "RateLimit-Reset", "Idempotency-Replayed",
	}, ", ")
)

// AllowOrigin sets the headers with which a browser lets a page of origin call with cookies and
// read the response, and replaces earlier values. It does not check origin: the caller must, and
// must add Vary: Origin. It never fails.
func AllowOrigin(h http.Header, origin string) {
	h.Set("Access-Control-Allow-Origin", origin)
	h.Set("Access-Control-Allow-Credentials", "true")
	h.Set("Access-Control-Expose-Headers", corsExposedHeaders)
}

// AnswerPreflight reports whether r is a browser's CORS preflight, and writes the answer's headers
// to h; for any other request it leaves h alone. The caller sends the status and calls AllowOrigin.
// The answer allows GET, HEAD, POST, PUT and DELETE for every path: the route refuses other methods
// when the page uses them. CPU only.
func AnswerPreflight(h http.Header, r *http.Request) bool {
	if r.Method != http.MethodOptions || r.Header.Get("Access-Control-Request-Method") == "" {
		return false
	}
	h.Set("Access-Control-Allow-Methods", "GET, HEAD, POST, PUT, DELETE")
	h.Set("Access-Control-Allow-Headers", corsAllowedHeaders)
	h.Set("Access-Control-Max-Age", "600")
	return true
}

// handleCORS allows pages of the configured origins, and reports whether r is a preflight, answered
// by h. With configured origins every response varies by Origin, also for a request without Origin:
// a cache would otherwise give a page a response without the CORS headers.
func (c *Config) handleCORS(h http.Header, r *http.Request) bool {
	if len(c.AllowedOrigins) == 0 {
		return false
	}
	h.Add("Vary", "Origin")
	origin := r.Header.Get("Origin")
	if !slices.Contains(c.AllowedOrigins, origin) {
		return false
	}
	AllowOrigin(h, origin)
	return AnswerPreflight(h, r)
}
