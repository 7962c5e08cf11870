package main

import (
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"melmastoon.ghasi.io/bff-consumer/local/gateway"
	"melmastoon.ghasi.io/bff-consumer/local/servertest"
	"melmastoon.ghasi.io/bff-consumer/shared/web"
)

// The test sends every route of the API document a valid and an invalid request, with and without a
// cookie. A public response neither reads nor sets the cookie. A personal response is not cacheable
// and has the rate limit headers, also when it is a rejection. A rejection has Cache-Control:
// no-store. The request log has no address, no cookie, no user agent and no handoff token.
func TestRoutes_ResponseIsEitherSharedOrPersonal(t *testing.T) {
	state := servertest.StateDir(t)
	s := servertest.Start(t, state)
	const many = `{"cookie":1000000,"ip":1000000,"fingerprint":1000000}`
	servertest.SetFlags(t, s, `{"limitsEnabled":true,"limits":{"read":`+many+`,"handoff":`+many+`,"telemetry":`+many+`}}`)
	res, found := servertest.Call(t, http.MethodPost, s.URL+web.BasePath+"/search", servertest.SearchBody("Kabul"))
	cookie := res.Cookies()[0].Value
	hotel := found["listings"].([]any)[0].(map[string]any)
	table := servertest.RouteRequests(hotel["propertyId"].(string), hotel["tenantId"].(string))

	operations, err := gateway.Operations(filepath.Join("..", "api", "consumer.openapi.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	// SessionClear comes last: it ends the session of the other requests.
	slices.SortStableFunc(operations, func(a, b gateway.Operation) int {
		return strings.Compare(strings.TrimPrefix(b.Function, "SessionClear"), strings.TrimPrefix(a.Function, "SessionClear"))
	})
	secrets := []string{cookie, "Mozilla", "Firefox", "canary"}
	for _, op := range operations {
		v, known := table[op.Function]
		if !known {
			t.Errorf("%s is not in RouteRequests", op.Function)
			continue
		}
		delete(table, op.Function)
		headers := []string{"Cookie", "gms_id=" + cookie, "Idempotency-Key", "the-table-of-all-routes", "X-Client-Timezone", "canary"}
		for _, sent := range [][]string{headers, headers[2:]} {
			res, answer := servertest.Call(t, op.Method, s.URL+web.BasePath+v.Path, v.Body, sent...)
			if link, ok := answer["url"].(string); ok && op.Function == "Handoff" {
				_, token, _ := strings.Cut(link, "?h=")
				secrets = append(secrets, token)
			}
			control, cookies := res.Header.Get("Cache-Control"), res.Header["Set-Cookie"]
			switch {
			case res.StatusCode >= 300:
				t.Errorf("%s: %d %v", op.Function, res.StatusCode, answer)
			case v.Shared && (!strings.HasPrefix(control, "public, max-age=15") || len(cookies) > 0):
				t.Errorf("%s is shared: Cache-Control %s, cookies %v", op.Function, control, cookies)
			case !v.Shared && (control != "private, no-store" || len(cookies) > 1):
				t.Errorf("%s is personal: Cache-Control %s, cookies %v", op.Function, control, cookies)
			}
			checkRateLimitHeaders(t, op.Function, v.Shared, res)
			if v.BadPath == "" {
				continue
			}
			res, answer = servertest.Call(t, op.Method, s.URL+web.BasePath+v.BadPath, v.BadBody, sent...)
			if res.StatusCode < 400 || res.StatusCode > 499 || res.Header.Get("Cache-Control") != "no-store" || len(res.Header["Set-Cookie"]) > 0 {
				t.Errorf("%s, invalid request: %d, Cache-Control %s, cookies %v, %v", op.Function, res.StatusCode, res.Header.Get("Cache-Control"), res.Header["Set-Cookie"], answer)
			}
			checkRateLimitHeaders(t, op.Function, v.Shared, res)
		}
		if v.Shared {
			with, _ := servertest.Call(t, op.Method, s.URL+web.BasePath+v.Path, "", headers...)
			without, _ := servertest.Call(t, op.Method, s.URL+web.BasePath+v.Path, "")
			if with.Header.Get("Etag") == "" || with.Header.Get("Etag") != without.Header.Get("Etag") {
				t.Errorf("%s depends on the cookie: ETag %s with it, %s without", op.Function, with.Header.Get("Etag"), without.Header.Get("Etag"))
			}
		}
	}
	for _, left := range slices.Sorted(maps.Keys(table)) {
		t.Errorf("%s is not in the API document", left)
	}

	logs, err := filepath.Glob(filepath.Join(state, "log", "*.jsonl"))
	if err != nil || len(logs) == 0 {
		t.Fatalf("no log: %v", err)
	}
	for _, log := range logs {
		text, err := os.ReadFile(log)
		if err != nil {
			t.Fatal(err)
		}
		for _, secret := range secrets {
			if strings.Contains(string(text), secret) {
				t.Errorf("%.24s… is in %s", secret, filepath.Base(log))
			}
		}
		if strings.Contains(string(text), `"127.0.0.1`) || strings.Contains(string(text), " 127.0.0.1:") {
			t.Errorf("an address is in %s", filepath.Base(log))
		}
	}
}

// checkRateLimitHeaders checks that a personal response has the rate limit headers of the route's
// class and that a shared response has none.
func checkRateLimitHeaders(t *testing.T, function string, shared bool, res *http.Response) {
	t.Helper()
	class := "read"
	switch {
	case function == "Handoff":
		class = "handoff"
	case strings.HasPrefix(function, "Telemetry"):
		class = "telemetry"
	}
	for _, name := range []string{"RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset", "RateLimit", "RateLimit-Policy"} {
		got := res.Header.Get(name)
		ok := got != "" && (name != "RateLimit" && name != "RateLimit-Policy" || strings.HasPrefix(got, `"`+class+"-"))
		if ok == shared || shared && got != "" {
			t.Errorf("%s responds %d with %s: %q", function, res.StatusCode, name, got)
		}
	}
}
