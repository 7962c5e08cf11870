package ratelimit

import (
	"net/http"
	"strconv"
	"time"
)

// Result is the outcome of a counted request. A result describes one bucket: of an allowed request
// the bucket with the fewest requests left, of a refused request the empty bucket with the longest
// wait.
type Result struct {
	Refused   bool
	Policy    string        // class and bucket: "read-cookie"
	PerMinute int           // requests per minute that the policy allows in the long run
	Remaining int           // requests that would be allowed at once; 0 if refused
	Reset     time.Duration // until the bucket is full again; if refused, until the next request is allowed
}

// WriteHeaders sets the RateLimit fields of the early drafts and of the newest draft
// (draft-ietf-httpapi-ratelimit-headers-10), five in all, and replaces their earlier values.
// Durations are whole seconds, rounded up as problem.Write rounds Retry-After. Pure CPU; it never
// fails, but panics on a nil s, the Result of a request that was not counted, and on a nil h.
func (s *Result) WriteHeaders(h http.Header) {
	limit, remaining := strconv.Itoa(s.PerMinute), strconv.Itoa(s.Remaining)
	reset := strconv.FormatInt(int64((s.Reset+time.Second-1)/time.Second), 10)
	all := [...]string{
		limit, remaining, reset,
		`"` + s.Policy + `";r=` + remaining + ";t=" + reset,
		`"` + s.Policy + `";q=` + limit + ";w=60",
	}
	for i, name := range headerNames {
		h[name] = all[i : i+1 : i+1]
	}
}

// headerNames lists the fields that WriteHeaders sets, in the canonical spelling of net/http.
var headerNames = [...]string{"Ratelimit-Limit", "Ratelimit-Remaining", "Ratelimit-Reset", "Ratelimit", "Ratelimit-Policy"}
