package gateway

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"melmastoon.ghasi.io/bff-consumer/shared/web"
)

// Caches store a shared response. Without Origin in Vary a page could receive the CORS headers of
// another page.
func TestAllowLocalOrigins_SharedResponseVariesAndExposesETag(t *testing.T) {
	t.Parallel()
	for _, inURL := range []bool{true, false} {
		h := AllowLocalOrigins(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { web.MarkShared(w, inURL, false) }))
		r := httptest.NewRequest(http.MethodGet, web.BasePath+"/things", nil)
		r.Header.Set("Origin", "http://localhost:3000")
		rec := httptest.NewRecorder()
		h.ServeHTTP(rec, r)
		vary := strings.Split(strings.Join(rec.Header()["Vary"], ", "), ", ")
		if !slices.Contains(vary, "Origin") || !slices.Contains(vary, "Accept-Encoding") || slices.Contains(vary, "X-Currency") == inURL {
			t.Errorf("in the URL %t: it varies by %v", inURL, vary)
		}
		if exposed := strings.Split(rec.Header().Get("Access-Control-Expose-Headers"), ", "); !slices.Contains(exposed, "ETag") {
			t.Errorf("a page may read %v", exposed)
		}
	}
}
