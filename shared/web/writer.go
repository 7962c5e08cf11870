package web

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

// responseWriter records status and size of a response, and sets the headers that depend on them
// and on the time.
type responseWriter struct {
	http.ResponseWriter
	call   *Call
	status int // 0: not written yet
	size   int64
}

// started reports whether the status has been sent.
func (w *responseWriter) started() bool { return w.status != 0 }

// Unwrap lets http.ResponseController reach the connection.
func (w *responseWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// WriteHeader ends the span and adds Server-Timing before it sends the status; due telemetry is
// exported first, and the response waits for the export for at most 50 ms, or 1 s on an internal
// endpoint. A public response that sets a cookie becomes private. A status below 200 is passed on
// at once.
func (w *responseWriter) WriteHeader(status int) {
	if status >= 200 && w.status == 0 {
		w.status = status
		h := w.Header()
		if h["Set-Cookie"] != nil && strings.HasPrefix(h.Get("Cache-Control"), "public") {
			MarkPrivate(w) // a cookie makes the response personal
		}
		w.call.endSpan(status)
		h["Server-Timing"] = []string{w.call.serverTiming()}
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *responseWriter) Write(b []byte) (int, error) {
	if w.status == 0 {
		w.WriteHeader(http.StatusOK)
	}
	n, err := w.ResponseWriter.Write(b)
	w.size += int64(n)
	return n, err
}

// serverTiming returns the value of Server-Timing: the phases so far and the total, in
// milliseconds.
func (c *Call) serverTiming() string {
	var buffer [160]byte
	b := buffer[:0]
	c.mu.Lock()
	for _, p := range c.phases {
		b = append(b, p.name...)
		b = append(b, ";dur="...)
		b = appendMilliseconds(b, p.duration)
		b = append(b, ", "...)
	}
	c.mu.Unlock()
	b = append(b, "total;dur="...)
	return string(appendMilliseconds(b, c.now().Sub(c.Started)))
}

func appendMilliseconds(b []byte, d time.Duration) []byte {
	n := tenths(d)
	b = strconv.AppendInt(b, n/10, 10)
	return append(b, '.', byte('0'+n%10))
}

// tenths returns a duration in tenths of a millisecond, rounded; a negative duration counts as 0.
func tenths(d time.Duration) int64 {
	return max(int64(d+50*time.Microsecond)/int64(100*time.Microsecond), 0)
}
