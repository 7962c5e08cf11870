package gateway

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

func TestAllowLocalOrigins_SetsSameOriginFetchSite(t *testing.T) {
	t.Parallel()
	for origin, want := range map[string]string{"http://localhost:3000": "same-origin", "https://example.com": "cross-site", "": ""} {
		var seen string
		h := AllowLocalOrigins(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { seen = r.Header.Get("Sec-Fetch-Site") }))
		r := httptest.NewRequest(http.MethodPost, "/", nil)
		if origin != "" {
			r.Header.Set("Origin", origin)
			r.Header.Set("Sec-Fetch-Site", "cross-site")
		}
		h.ServeHTTP(httptest.NewRecorder(), r)
		if seen != want {
			t.Errorf("%q: %q, want %q", origin, seen, want)
		}
	}
}
