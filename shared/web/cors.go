package web

import (
	"net/http"
	"slices"
	"strings"
)

// What a page of another origin may send and read besides what every page may.
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

// AllowOrigin lets a page of that origin call with cookies and read the answer.
func AllowOrigin(h http.Header, origin string) {
	h.Set("Access-Control-Allow-Origin", origin)
	h.Set("Access-Control-Allow-Credentials", "true")
	h.Set("Access-Control-Expose-Headers", corsExposedHeaders)
}

// AnswerPreflight reports whether a browser asks what a page may send before it sends it, and answers in h. The methods are not
// those of one address: whoever may use one may use all, and the address itself refuses what it has not.
func AnswerPreflight(h http.Header, r *http.Request) bool {
	if r.Method != http.MethodOptions || r.Header.Get("Access-Control-Request-Method") == "" {
		return false
	}
	h.Set("Access-Control-Allow-Methods", "GET, HEAD, POST, PUT, DELETE")
	h.Set("Access-Control-Allow-Headers", corsAllowedHeaders)
	h.Set("Access-Control-Max-Age", "600")
	return true
}

// handleCORS lets listed pages in, and reports whether this request is a browser's question, which h then answers. An answer that is
// stored varies by origin even where none was sent: it would be given to a page that then may not read it.
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
