package detail

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	"melmastoon.ghasi.io/bff-consumer/shared/web"
)

// discardWriter is a ResponseWriter that counts bytes and discards them.
type discardWriter struct {
	header http.Header
	status int
	size   int
}

func (s *discardWriter) Header() http.Header         { return s.header }
func (s *discardWriter) WriteHeader(status int)      { s.status = status }
func (s *discardWriter) Write(p []byte) (int, error) { s.size += len(p); return len(p), nil }

// BenchmarkDetail_CacheHit measures a cached page and, for comparison, two lower bounds: a handler
// that writes the same bytes, and a handler that reads the bytes from Redis first.
func BenchmarkDetail_CacheHit(b *testing.B) {
	h := newHarness(b)
	h.Log.Discard()
	tag := h.send("GET", detailURL, "Accept-Encoding", "gzip").Header.Get("ETag")
	whole := []byte(h.send("GET", detailURL, "Accept-Encoding", "gzip").Text)
	key := h.Deps.Keys.Key("cache", "detail", kabulPropertyID, "fa-AF", "AFN")
	run := func(name string, handler http.Handler, status int, headers ...string) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				r := httptest.NewRequest("GET", web.BasePath+detailURL, nil)
				for i := 0; i < len(headers); i += 2 {
					r.Header.Set(headers[i], headers[i+1])
				}
				for pb.Next() {
					w := &discardWriter{header: http.Header{}}
					handler.ServeHTTP(w, r.Clone(context.Background()))
					if w.status != status {
						b.Errorf("got status %d; want %d", w.status, status)
						return
					}
				}
			})
		})
	}
	run("bare", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(200)
		w.Write(whole)
	}), 200)
	run("bareRedisGet", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := h.RDB.Get(r.Context(), key).Bytes()
		if err != nil {
			b.Error(err)
		}
		w.WriteHeader(200)
		w.Write(body)
	}), 200)
	run("gzip", h, 200, "Accept-Encoding", "gzip")
	run("identity", h, 200)
	run("notModified", h, 304, "Accept-Encoding", "gzip", "If-None-Match", tag)
}
