package server

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

func TestStartupHandler_RejectsCrossOriginRequests(t *testing.T) {
	t.Parallel()
	yes := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) })
	d := &startupHandler{}
	d.setHandlers(yes, yes)
	for name, c := range map[string]struct {
		method, url string
		header      map[string]string
		let         bool
	}{
		"a tool":                              {"POST", "http://127.0.0.1:8080/_local/events", nil, true},
		"our page":                            {"POST", "http://localhost:8080/_local/events", map[string]string{"Sec-Fetch-Site": "same-origin", "Origin": "http://localhost:8080"}, true},
		"another page of this machine":        {"PUT", "http://127.0.0.1:8080/_local/flags", map[string]string{"Sec-Fetch-Site": "cross-site", "Origin": "http://app.localhost:3000"}, true},
		"by the name of IPv6":                 {"GET", "http://[::1]:8080/_local/flags", nil, true},
		"a page elsewhere":                    {"POST", "http://127.0.0.1:8080/_local/events", map[string]string{"Sec-Fetch-Site": "cross-site", "Origin": "https://example.com"}, false},
		"a page elsewhere, in an old browser": {"POST", "http://127.0.0.1:8080/_local/events", map[string]string{"Origin": "https://localhost.example.com"}, false},
		"a page in a sandbox":                 {"DELETE", "http://127.0.0.1:8080/_local/flags", map[string]string{"Origin": "null"}, false},
		"a link elsewhere":                    {"GET", "http://127.0.0.1:8080/", map[string]string{"Sec-Fetch-Site": "cross-site"}, true},
		"a name that was made to point here":  {"GET", "http://rebound.example.com:8080/_local/telemetry", map[string]string{"Sec-Fetch-Site": "same-origin"}, false},
		"such a name and the API":             {"GET", "http://rebound.example.com/bff/consumer/v1/session", nil, false},
		"an address of the network":           {"GET", "http://192.168.1.7:8080/", nil, false},
	} {
		r := httptest.NewRequest(c.method, c.url, nil)
		for key, value := range c.header {
			r.Header.Set(key, value)
		}
		rec := httptest.NewRecorder()
		d.ServeHTTP(rec, r)
		if want := map[bool]int{true: http.StatusTeapot, false: http.StatusForbidden}[c.let]; rec.Code != want {
			t.Errorf("%s: %d %s", name, rec.Code, rec.Body)
		}
	}
}
