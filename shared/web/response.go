package web

import (
	"bytes"
	"fmt"
	"net/http"
	"strconv"
	"sync"

	"github.com/go-json-experiment/json"
)

var bufferPool = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// maxPooledBytes is the greatest capacity of a reused buffer: the memory of a large body is freed.
const maxPooledBytes = 256 << 10

func releaseBuffer(b *bytes.Buffer) {
	if b.Cap() <= maxPooledBytes {
		bufferPool.Put(b)
	}
}

// WriteJSON sends v as JSON with status. A response without Cache-Control becomes private.
// WriteJSON returns an error, and writes no header and no body, only if v cannot be encoded; a
// failed write to the client is not an error. It panics if status is not from 100 to 999.
//
// The whole body is encoded in memory first; the process reuses buffers of up to 256 KiB. In the
// pipeline, the start of the response may export telemetry and wait for the export for 50 ms, or 1
// s on an internal endpoint. The write lasts as long as the client's connection blocks; no deadline
// of the request ends it.
func WriteJSON(w http.ResponseWriter, status int, v any) error {
	b := bufferPool.Get().(*bytes.Buffer)
	defer releaseBuffer(b)
	b.Reset()
	if err := json.MarshalWrite(b, v, json.Deterministic(true)); err != nil {
		return fmt.Errorf("web: encode answer: %w", err)
	}
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Content-Length", strconv.Itoa(b.Len()))
	if h.Get("Cache-Control") == "" {
		MarkPrivate(w)
	}
	w.WriteHeader(status)
	_, _ = w.Write(b.Bytes()) // fails only when the client is gone
	return nil
}

// MarkPrivate makes the response personal: no cache may store it. It replaces Cache-Control. Call
// it before the response starts; later it has no effect. It never fails.
func MarkPrivate(w http.ResponseWriter) { w.Header().Set("Cache-Control", "private, no-store") }

// MarkShared makes the response the same for all clients: browsers keep it for 15 s, the CDN for
// 300 s and 60 s more while it revalidates. inURL says that locale and currency are both in the
// URL; the CDN stores no response that varies by the headers of locale or currency. A degraded or
// stale response is kept for 15 s at most. MarkShared replaces Cache-Control and adds to Vary: call
// it once, before the response starts. A response that also sets a cookie becomes private. It never
// fails.
func MarkShared(w http.ResponseWriter, inURL, degraded bool) {
	h := w.Header()
	if degraded {
		h.Set("Cache-Control", "public, max-age=15, s-maxage=15")
	} else {
		h.Set("Cache-Control", "public, max-age=15, s-maxage=300, stale-while-revalidate=60")
	}
	if inURL { // added, not set: a gateway before this process may already vary by Origin
		h.Add("Vary", "Accept-Encoding")
	} else {
		h.Add("Vary", "Accept-Language, X-Currency, Accept-Encoding")
	}
}
