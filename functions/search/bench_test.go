package search

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"melmastoon.ghasi.io/bff-consumer/shared/functest"
	"melmastoon.ghasi.io/bff-consumer/shared/web"
)

// BenchmarkWarmHit is one warm search through the whole pipeline, without the network of its client.
func BenchmarkWarmHit(b *testing.B) {
	h := newHouse(b)
	h.up.Change(func() { h.up.hits = 20 })
	h.setFlags(quiet)
	body := h.request("Kabul")
	cookie := "gms_id=" + h.find(body).Cookie()
	h.Log.Drop()
	b.ReportAllocs()
	for b.Loop() {
		r := httptest.NewRequest("POST", web.Base+"/search", strings.NewReader(body))
		r.Header = http.Header{"Content-Type": {"application/json"}, "User-Agent": {functest.Firefox}, "Cookie": {cookie}, "Accept-Encoding": {"gzip"}}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Header().Get("X-Cache") != "HIT" {
			b.Fatal(w.Header())
		}
	}
}
