package web

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"melmastoon.ghasi.io/bff-consumer/shared/problem"
)

func TestLogRequest_HasCloudLoggingFields(t *testing.T) {
	t.Setenv("GOOGLE_CLOUD_PROJECT", "melma")
	at := &clock{t: time.Date(2026, 11, 5, 10, 20, 30, 123_000_000, time.UTC)}
	f, l := newLoggedFunction(t, "POST "+BasePath+"/search", func(w http.ResponseWriter, r *http.Request) error {
		at.advance(12 * time.Millisecond)
		FromContext(r.Context()).AddLogField("cache", "HIT")
		return okHandler(w, r)
	})
	f.withState(func(s *state) { s.now = at.now })
	r := httptest.NewRequest("POST", BasePath+"/search", nil)
	r.Header.Set("X-Request-Id", "01ARZ3NDEKTSV4RRFFQ69G5FAV")
	r.Header.Set("Traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")
	f.ServeHTTP(httptest.NewRecorder(), r)
	record := l.only(t)
	span := record["logging.googleapis.com/spanId"]
	if s, isText := span.(string); !isText || len(s) != 16 || s == "00f067aa0ba902b7" {
		t.Errorf("span %v", span)
	}
	delete(record, "logging.googleapis.com/spanId")
	want := map[string]any{
		"time": "2026-11-05T10:20:30.135Z", "severity": "INFO", "message": "POST /bff/consumer/v1/search",
		"httpRequest":                          map[string]any{"requestMethod": "POST", "requestUrl": "/bff/consumer/v1/search", "status": 200.0, "responseSize": 2.0, "latency": "0.012s"},
		"logging.googleapis.com/trace":         "projects/melma/traces/4bf92f3577b34da6a3ce929d0e0e4736",
		"logging.googleapis.com/trace_sampled": true,
		"requestId":                            "01ARZ3NDEKTSV4RRFFQ69G5FAV", "function": "Test", "cache": "HIT",
	}
	if got, want := fmt.Sprint(record), fmt.Sprint(want); got != want {
		t.Errorf("record\n%s\nwant\n%s", got, want)
	}
}

func TestLogRequest_ContainsNoGuestData(t *testing.T) {
	t.Parallel()
	f, l := newLoggedFunction(t, "POST /v1/hotels/{propertyId}", func(w http.ResponseWriter, r *http.Request) error {
		return Decode(r, new(query))
	})
	l2 := new(logBuffer)
	if err := f.OpenWithLog(t.Context(), l2); err != nil {
		t.Fatal(err)
	}
	secrets := []string{"203.0.113.9", "192.0.2.1", "Mozilla", "gms_01", "swordfish", "ppt_01", "+93700", "BREWSECRET", "evil.example"}
	for _, method := range []string{"POST", "BREWSECRET"} {
		r := httptest.NewRequest(method, "/v1/hotels/ppt_01?h=swordfish", strings.NewReader(`{"+93700":1}`))
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("User-Agent", "Mozilla/5.0")
		r.Header.Set("Cookie", "gms_id=gms_01")
		r.Header.Set("X-Forwarded-For", "203.0.113.9")
		r.Header.Set("Referer", "https://evil.example")
		f.ServeHTTP(httptest.NewRecorder(), r)
	}
	text := string(bytes.Join(append(l.lines, l2.lines...), nil))
	for _, secret := range secrets {
		if strings.Contains(text, secret) {
			t.Errorf("%s is in %s", secret, text)
		}
	}
	if !strings.Contains(text, `"requestUrl":"/v1/hotels/{propertyId}"`) || !strings.Contains(text, `"requestMethod":"OTHER"`) {
		t.Errorf("records %s", text)
	}
}

func TestLogRequest_SeverityFollowsServerErrors(t *testing.T) {
	t.Parallel()
	for status, c := range map[string]struct {
		err  error
		want string
	}{
		"fine":           {nil, "INFO"},
		"their mistake":  {problem.Invalid(problem.FieldError{Field: "a", Code: "b"}), "INFO"},
		"our mistake":    {errors.New("broken"), "ERROR"},
		"upstream's":     {problem.New(problem.UpstreamUnavailable, "", nil), "ERROR"},
		"a long mistake": {errors.New(strings.Repeat("x", 1<<20)), "ERROR"},
	} {
		f, l := newLoggedFunction(t, "GET /x", func(http.ResponseWriter, *http.Request) error { return c.err })
		f.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/x", nil))
		if record := l.only(t); record["severity"] != c.want || len(l.lines[0]) > 4<<10 {
			t.Errorf("%s: %v in %d bytes, want %s", status, record["severity"], len(l.lines[0]), c.want)
		}
	}
}

func TestLogHandler_AddsRequestIDToOtherRecords(t *testing.T) {
	t.Parallel()
	l := new(logBuffer)
	logger := slog.New(LocalLogHandler(l))
	f := newTestFunction(t, "GET /x", func(_ http.ResponseWriter, r *http.Request) error {
		logger.With("room", "flags").WithGroup("g").WarnContext(r.Context(), "kept the last good value", "level", 3)
		return nil
	})
	w := httptest.NewRecorder()
	f.ServeHTTP(w, httptest.NewRequest("GET", "/x", nil))
	text := string(l.lines[0])
	if record := l.only(t); record["severity"] != "WARNING" || record["message"] != "kept the last good value" || record["room"] != "flags" ||
		!strings.Contains(text, w.Header().Get("X-Request-Id")) || record["g"].(map[string]any)["level"] != 3.0 {
		t.Errorf("record %s", text)
	}
}
