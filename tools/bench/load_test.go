package main

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"melmastoon.ghasi.io/bff-consumer/shared/problem"
)

// The server fails in several ways in turns.
func TestRunLoad_CountsFailuresByStatusAndCode(t *testing.T) {
	t.Parallel()
	turn := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch turn++; turn % 5 {
		case 0:
			problem.Write(w, problem.Occurrence{}, problem.New(problem.UpstreamUnavailable, "Please try again.", nil))
		case 1, 2:
			problem.Write(w, problem.Occurrence{}, problem.New(problem.HandoffReplayed, "A handoff is used once.", nil))
		case 3:
			w.Header().Set("Content-Length", "0")
			w.WriteHeader(http.StatusBadGateway)
		default:
			w.Header().Set("Content-Length", "2")
			w.Write([]byte("{}"))
		}
	}))
	defer server.Close()
	sent := 0
	l, err := runLoad(strings.TrimPrefix(server.URL, "http://"), 1, time.Hour, func() []byte {
		if sent++; sent > 10 {
			return nil
		}
		return request("GET", "/", "")
	})
	if err != nil {
		t.Fatal(err)
	}
	want := "409 HANDOFF_REPLAYED 4, 502 2, 503 UPSTREAM_UNAVAILABLE 2"
	if got := l.failed.String(); got != want || l.failed.total() != 8 || len(l.durations) != 10 {
		t.Errorf("failures %q of %d, %d responses; want %q of 8, 10 responses", got, l.failed.total(), len(l.durations), want)
	}
	var out strings.Builder
	printTable(options{Out: &out}, []row{{name: "fine"}, median([]row{{failed: l.failed}, {failed: failures{"502": 1}}})})
	if text := out.String(); !strings.Contains(text, "409 HANDOFF_REPLAYED 4, 502 3, 503 UPSTREAM_UNAVAILABLE 2\n") || strings.Contains(text, "not 2xx of fine") {
		t.Errorf("the table does not list the failures, or lists them twice:\n%s", text)
	}
}
