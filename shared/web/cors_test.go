package web

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"melmastoon.ghasi.io/bff-consumer/shared/problem"
)

func TestCORS_AllowsListedOrigins(t *testing.T) {
	const page, tenant = "https://www.example.com", "https://kabul-grand.example.com"
	t.Setenv("PAGE_ORIGINS", page)
	f := newTestFunction(t, "POST /things", func(w http.ResponseWriter, r *http.Request) error {
		if r.Header.Get("X-Refuse") != "" {
			return problem.Invalid()
		}
		return nil
	})
	for _, c := range []struct {
		name, method, origin, asks string
		refused                    bool
		status                     int
		allowed                    string
		methods                    bool
	}{
		{"asks", "OPTIONS", page, "POST", false, 204, page, true},
		{"calls", "POST", page, "", false, 200, page, false},
		{"is refused, and may read why", "POST", page, "", true, 422, page, false},
		{"uses a method that is not there", "PUT", page, "", false, 405, page, false},
		{"OPTIONS without a question", "OPTIONS", page, "", false, 405, page, false},
		{"a tenant's asks", "OPTIONS", tenant, "POST", false, 405, "", false},
		{"a tenant's calls", "POST", tenant, "", false, 403, "", false},
		{"no page", "POST", "", "", false, 200, "", false},
	} {
		r := httptest.NewRequest(c.method, "/things", nil)
		if c.origin != "" {
			r.Header.Set("Origin", c.origin)
		}
		if c.asks != "" {
			r.Header.Set("Access-Control-Request-Method", c.asks)
		}
		if c.refused {
			r.Header.Set("X-Refuse", "yes")
		}
		w := httptest.NewRecorder()
		f.ServeHTTP(w, r)
		h := w.Header()
		if w.Code != c.status || h.Get("Access-Control-Allow-Origin") != c.allowed || (h.Get("Access-Control-Allow-Methods") != "") != c.methods {
			t.Errorf("%s: %d %v", c.name, w.Code, h)
		}
		if (h.Get("Access-Control-Allow-Credentials") == "true") != (c.allowed != "") {
			t.Errorf("%s: with cookies? %v", c.name, h)
		}
	}
}

func TestCORS_VaryOriginWhenOriginsAreConfigured(t *testing.T) {
	for origins, want := range map[string]bool{"": false, "https://www.example.com": true} {
		t.Setenv("PAGE_ORIGINS", origins)
		f := newTestFunction(t, "GET /things", func(w http.ResponseWriter, _ *http.Request) error { MarkShared(w, true, false); return nil })
		w := httptest.NewRecorder()
		f.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/things", nil))
		if vary := strings.Split(strings.Join(w.Header()["Vary"], ", "), ", "); slices.Contains(vary, "Origin") != want {
			t.Errorf("%q: varies by %v", origins, vary)
		}
	}
}
