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

// maxPooledBytes keeps one large body from being held for ever.
const maxPooledBytes = 256 << 10

func releaseBuffer(b *bytes.Buffer) {
	if b.Cap() <= maxPooledBytes {
		bufferPool.Put(b)
	}
}

// WriteJSON answers with v as JSON. An answer that did not say whom it is for is private. Nothing is written when v has
// no JSON form.
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
	_, _ = w.Write(b.Bytes()) // the client may be gone; there is nobody else to tell
	return nil
}

// MarkPrivate says that the answer is for this guest alone and is kept nowhere.
func MarkPrivate(w http.ResponseWriter) { w.Header().Set("Cache-Control", "private, no-store") }

// MarkShared says that the answer is for everybody who asks for the same. inURL: locale and currency are both in the URL,
// so that the CDN can store it (it refuses any Vary on what they would otherwise come from). A degraded or stale answer
// is kept for 15 s at most.
func MarkShared(w http.ResponseWriter, inURL, degraded bool) {
	h := w.Header()
	if degraded {
		h.Set("Cache-Control", "public, max-age=15, s-maxage=15")
	} else {
		h.Set("Cache-Control", "public, max-age=15, s-maxage=300, stale-while-revalidate=60")
	}
	if inURL { // beside what stands before us varies by: the local gateway answers each Origin in its own way
		h.Add("Vary", "Accept-Encoding")
	} else {
		h.Add("Vary", "Accept-Language, X-Currency, Accept-Encoding")
	}
}
