package search

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"melmastoon.ghasi.io/bff-consumer/shared/testkit/functest"
	"melmastoon.ghasi.io/bff-consumer/shared/web"
)

// BenchmarkSearchList_WarmHit measures a warm search through the whole pipeline, without the
// client's network.
func BenchmarkSearchList_WarmHit(b *testing.B) {
	h := newHarnessWithFlags(b, samplingOff)
	h.upstreams.Update(func() { h.upstreams.hits = 20 })
	body := h.requestBody("Kabul")
	cookie := "gms_id=" + h.mustSearch(body).SessionCookie()
	h.Log.Discard()
	b.ReportAllocs()
	for b.Loop() {
		r := httptest.NewRequest("POST", web.BasePath+"/search", strings.NewReader(body))
		r.Header = http.Header{"Content-Type": {"application/json"}, "User-Agent": {functest.Firefox}, "Cookie": {cookie}, "Accept-Encoding": {"gzip"}}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Header().Get("X-Cache") != "HIT" {
			b.Fatal(w.Header())
		}
	}
}
