package ratelimit

import (
	"net/http"
	"strconv"
	"time"
)

// Result is how a client stands with the limits once its request was counted: by the bucket that is closest to being
// empty, or that it has to wait for longest.
type Result struct {
	Refused   bool
	Policy    string        // class and bucket: "read-cookie"
	PerMinute int           // what the policy allows in the long run
	Remaining int           // requests that would be let through at once
	Reset     time.Duration // until that is the whole burst again; of a refused client: until the next request is let through
}

// WriteHeaders says it in the fields that clients know, those of the early drafts and those of the newest
// (draft-ietf-httpapi-ratelimit-headers-10).
func (s *Result) WriteHeaders(h http.Header) {
	limit, remaining := strconv.Itoa(s.PerMinute), strconv.Itoa(s.Remaining)
	reset := strconv.FormatInt(int64((s.Reset+time.Second-1)/time.Second), 10) // as problem.Write rounds Retry-After
	all := [...]string{
		limit, remaining, reset,
		`"` + s.Policy + `";r=` + remaining + ";t=" + reset,
		`"` + s.Policy + `";q=` + limit + ";w=60",
	}
	for i, name := range headerNames {
		h[name] = all[i : i+1 : i+1]
	}
}

// headerNames are the names that Write sets, as net/http spells them.
var headerNames = [...]string{"Ratelimit-Limit", "Ratelimit-Remaining", "Ratelimit-Reset", "Ratelimit", "Ratelimit-Policy"}
