package web

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestEdgeSecret_RejectsRequestsThatBypassTheEdge(t *testing.T) {
	newer, older := strings.Repeat("n", 32), strings.Repeat("o", 40)
	for _, c := range []struct {
		name, set, sent string
		status          int
	}{
		{"no edge", "", "", 200},
		{"by the edge", newer, newer, 200},
		{"by the edge while the secret changes", newer + "," + older, older, 200},
		{"by the edge after that", newer + "," + older, newer, 200},
		{"around it", newer, "", 403},
		{"guessed", newer, older, 403},
		{"both as one", newer + "," + older, newer + "," + older, 403},
		{"the beginning of it", newer, newer[:31], 403},
	} {
		t.Setenv("EDGE_SECRET", c.set)
		called := false
		f := newTestFunction(t, "GET /things", func(_ http.ResponseWriter, r *http.Request) error {
			called = true
			if c.set != "" && r.Header.Get("X-Edge-Secret") != "" {
				t.Errorf("%s: the handler sees the secret", c.name)
			}
			return nil
		})
		r := httptest.NewRequest(http.MethodGet, "/things", nil)
		if c.sent != "" {
			r.Header.Set("X-Edge-Secret", c.sent)
		}
		w := httptest.NewRecorder()
		f.ServeHTTP(w, r)
		if w.Code != c.status || called != (c.status == 200) {
			t.Errorf("%s: %d, called %t", c.name, w.Code, called)
		}
		if !called && !strings.Contains(w.Body.String(), "CALLER_NOT_ALLOWED") {
			t.Errorf("%s: %s", c.name, w.Body)
		}
	}
}

func TestEdgeSecret_InvalidValueFailsConfiguration(t *testing.T) {
	good := strings.Repeat("s", 32)
	for _, wrong := range []string{"short", good + ",", good + "," + good + "," + good, ","} {
		t.Setenv("EDGE_SECRET", wrong)
		if _, err := configFromEnv(); err == nil || !strings.Contains(err.Error(), "EDGE_SECRET") || strings.Contains(err.Error(), good) {
			t.Errorf("%q: %v", wrong, err)
		}
	}
}
