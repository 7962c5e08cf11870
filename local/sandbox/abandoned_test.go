package sandbox

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"melmastoon.ghasi.io/bff-consumer/local/dataset"
)

// Callers abandon calls with a body, too: hedged requests and processes that end.
func TestUpstream_CountsAbandonedCalls(t *testing.T) {
	t.Parallel()
	u := New(dataset.Embedded(), time.Now).Upstreams["search"]
	server := httptest.NewServer(u)
	t.Cleanup(server.Close)
	for n, b := range []Behaviour{{Hang: true}, {LatencyMs: maxDelayMs}} {
		u.SetBehaviour(b)
		ctx, leave := context.WithCancel(t.Context())
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, server.URL+"/api/v1/search/queries", strings.NewReader(`{"kind":"list"}`))
		if err != nil {
			t.Fatal(err)
		}
		left := make(chan error)
		go func() {
			_, err := http.DefaultClient.Do(req)
			left <- err
		}()
		waitFor(t, u, "it has arrived", func(c Counters) bool { return c.InFlight == 1 })
		leave()
		if err := <-left; err == nil {
			t.Error("it was answered")
		}
		waitFor(t, u, "its caller is missed", func(c Counters) bool { return c.InFlight == 0 && c.Abandoned == int64(n+1) })
	}
}

func waitFor(t *testing.T, u *Upstream, what string, is func(Counters) bool) {
	t.Helper()
	deadline := time.After(15 * time.Second)
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !is(u.Counters()) {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("not in time: %s: counters %+v", what, u.Counters())
		}
	}
}
