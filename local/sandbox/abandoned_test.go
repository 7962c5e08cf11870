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

// A call with a body counts as abandoned too when its caller gives up: a hedge that lost, a process that died.
func TestUpstream_CountsAbandonedCalls(t *testing.T) {
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
			t.Fatalf("never: %s: %+v", what, u.Counters())
		}
	}
}
