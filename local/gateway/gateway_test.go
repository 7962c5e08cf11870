package gateway

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"melmastoon.ghasi.io/bff-consumer/shared/lifecycle"
	"melmastoon.ghasi.io/bff-consumer/shared/web"
)

// testFunctions returns open functions. Each answers with its name and path value; the header
// Whence holds the client address it sees.
func testFunctions(t *testing.T) (functions []*web.Function) {
	t.Helper()
	for name, pattern := range map[string]string{
		"List": "GET " + web.BasePath + "/things", "Add": "POST " + web.BasePath + "/things",
		"One": "GET " + web.BasePath + "/things/{thingId}", "Inside": "POST /internal/things",
	} {
		f := web.New(name, pattern, func(context.Context, *lifecycle.WarmUp) (web.Handler, error) {
			return func(w http.ResponseWriter, r *http.Request) error {
				w.Header().Set("Whence", web.FromContext(r.Context()).ClientIP.String())
				fmt.Fprint(w, name, r.PathValue("thingId"))
				return nil
			}, nil
		})
		if err := f.OpenWithLog(t.Context(), io.Discard); err != nil {
			t.Fatal(err)
		}
		functions = append(functions, f)
	}
	return functions
}

const apiDocument = `
openapi: 3.0.3
info: {title: Things, version: "1"}
servers: [{url: /bff/consumer/v1}]
paths:
  /things:
    get: {operationId: List, tags: [things], responses: {"200": {description: ok}}}
    post: {operationId: Add, tags: [things], responses: {"200": {description: ok}}}
  /things/{id}:
    get: {operationId: One, tags: [thing], responses: {"200": {description: ok}}}
`

func parseOperations(t *testing.T, text string) []Operation {
	t.Helper()
	file := filepath.Join(t.TempDir(), "api.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	all, err := Operations(file)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// newTestGateway returns a gateway over testFunctions.
func newTestGateway(t *testing.T) http.Handler {
	t.Helper()
	h, err := New(web.BasePath, parseOperations(t, apiDocument), testFunctions(t))
	if err != nil {
		t.Fatal(err)
	}
	return AllowLocalOrigins(h)
}

func TestGateway_RoutesEachRequestToItsFunction(t *testing.T) {
	t.Parallel()
	h := newTestGateway(t)
	for request, want := range map[string]string{
		"GET /bff/consumer/v1/things":       "List",
		"POST /bff/consumer/v1/things":      "Add",
		"GET /bff/consumer/v1/things/7":     "One7",
		"GET /bff/consumer/v1/things/a%2Fb": "Onea/b",
		"HEAD /bff/consumer/v1/things":      "List", // net/http drops the body
		"GET /bff/consumer/v1/things/?x=1":  "404",
		"GET /bff/consumer/v1/things/7/8":   "404",
		"GET /bff/consumer/v1//things":      "404",
		"GET /bff/consumer/v1/Things":       "404",
		"GET /things":                       "404",
		"GET /":                             "404",
		"POST /internal/things":             "404",
		"DELETE /bff/consumer/v1/things":    "405 GET, HEAD, POST",
		"POST /bff/consumer/v1/things/7":    "405 GET, HEAD",
		"OPTIONS /bff/consumer/v1/things/7": "405 GET, HEAD",
	} {
		method, target, _ := strings.Cut(request, " ")
		rec := httptest.NewRecorder()
		h.ServeHTTP(rec, httptest.NewRequest(method, target, nil))
		got := rec.Body.String()
		if rec.Code != http.StatusOK {
			got = strings.TrimSpace(fmt.Sprint(rec.Code, " ", rec.Header().Get("Allow")))
			checkProblem(t, rec)
		}
		if got != want {
			t.Errorf("%s: %s, want %s", request, got, want)
		}
	}
}

// checkProblem checks the members of a problem response.
func checkProblem(t *testing.T, rec *httptest.ResponseRecorder) {
	t.Helper()
	var p struct {
		Status    int    `json:"status"`
		Code      string `json:"code"`
		RequestID string `json:"requestId"`
		TraceID   string `json:"traceId"`
	}
	if err := json.Unmarshal(rec.Body.Bytes(), &p); err != nil || rec.Header().Get("Content-Type") != "application/problem+json" {
		t.Fatalf("no problem: %v %s", err, rec.Body)
	}
	if p.Status != rec.Code || p.Code == "" || p.RequestID != rec.Header().Get("X-Request-Id") || len(p.TraceID) != 32 {
		t.Errorf("problem %+v", p)
	}
}

func TestNew_RejectsDocumentThatDisagreesWithFunctions(t *testing.T) {
	t.Parallel()
	wrong := strings.NewReplacer("operationId: Add", "operationId: Subtract", "/things/{id}:", "/stuff/{id}:").Replace(apiDocument)
	_, err := New(web.BasePath, parseOperations(t, wrong), testFunctions(t))
	if err == nil {
		t.Fatal("it is accepted")
	}
	for _, part := range []string{"no function has the name Subtract", "the function One serves GET", "POST /bff/consumer/v1/things: the document has no such operation"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%v does not say %q", err, part)
		}
	}
	if strings.Contains(err.Error(), "internal") {
		t.Errorf("an internal route is not the public document's: %v", err)
	}
	if _, err := Operations(filepath.Join(t.TempDir(), "missing.yaml")); err == nil {
		t.Error("a missing document is read")
	}
}

func TestAllowLocalOrigins_AllowsOnlyLocalPages(t *testing.T) {
	t.Parallel()
	h := newTestGateway(t)
	for origin, allowed := range map[string]bool{
		"http://localhost:3000": true, "https://localhost": true, "http://127.0.0.1:8080": true, "http://[::1]:5173": true,
		"http://localhost.example.com": false, "https://example.com": false, "null": false, "file://localhost": false, "": false,
	} {
		for _, preflight := range []bool{false, true} {
			method := http.MethodGet
			if preflight {
				method = http.MethodOptions
			}
			r := httptest.NewRequest(method, web.BasePath+"/things", nil)
			if origin != "" {
				r.Header.Set("Origin", origin)
			}
			if preflight {
				r.Header.Set("Access-Control-Request-Method", "POST")
			}
			rec := httptest.NewRecorder()
			h.ServeHTTP(rec, r)
			if got := rec.Header().Get("Access-Control-Allow-Origin"); (got == origin && origin != "") != allowed {
				t.Errorf("%q is answered %q", origin, got)
			}
			if preflight && allowed && (rec.Code != http.StatusNoContent || !strings.Contains(rec.Header().Get("Access-Control-Allow-Headers"), "Idempotency-Key")) {
				t.Errorf("preflight of %s: %d %v", origin, rec.Code, rec.Header())
			}
			if origin == "" && rec.Header().Get("Vary") != "" {
				t.Errorf("an answer to nobody's page varies by %s", rec.Header().Get("Vary"))
			}
		}
	}
}

func TestAllowLocalOrigins_PassesCountryHeader(t *testing.T) {
	t.Parallel()
	var seen string
	h := AllowLocalOrigins(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { seen = r.Header.Get("X-Client-Geo-Country") }))
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.Header.Set("X-Client-Geo-Country", "AF")
	h.ServeHTTP(httptest.NewRecorder(), r)
	if seen != "AF" {
		t.Errorf("it arrives as %q", seen)
	}
}

func TestGateway_TrustsForwardedForOnlyFromLoopback(t *testing.T) {
	t.Setenv("TRUSTED_HOPS", "1")
	h := newTestGateway(t)
	for _, c := range []struct{ peer, claimed, want string }{
		{"192.0.2.7:4711", "", "192.0.2.7"},
		{"192.0.2.7:4711", "203.0.113.9, 203.0.113.10", "192.0.2.7"},
		{"[2001:db8::7]:4711", "203.0.113.9", "2001:db8::7"},
		{"127.0.0.1:4711", "", "127.0.0.1"},
		{"127.0.0.1:4711", "203.0.113.9, 203.0.113.10", "203.0.113.10"},
		{"[::1]:4711", "2001:db8::9", "2001:db8::9"},
	} {
		r := httptest.NewRequest("GET", web.BasePath+"/things", nil)
		r.RemoteAddr = c.peer
		if c.claimed != "" {
			r.Header.Set("X-Forwarded-For", c.claimed)
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if seen := w.Header().Get("Whence"); seen != c.want {
			t.Errorf("%s, who claims %q, is taken for %s", c.peer, c.claimed, seen)
		}
	}
}
