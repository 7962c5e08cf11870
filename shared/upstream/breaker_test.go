package upstream

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

var oneSecond = policy{timeout: time.Second}

func TestBreaker_OpensAfterFiveConsecutiveFailures(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		server http.HandlerFunc
		asked  int // calls until it opens: a call whose tries both fail counts twice
	}{
		{"failures that are not tried again", respondStatus(500), 5},
		{"failures that are", respondStatus(503), 3},
		{"dropped connections", dropConnection, 3},
		{"silence", hang, 3},
		{"bad answers", respondJSON([]byte(`{"value":1}`)), 5},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, oneSecond, c.server, func(t *testing.T, client *client, calls *atomic.Int32) {
				for range c.asked {
					if _, err := get(t.Context(), client); ReasonOf(err) == "" || ReasonOf(err) == BreakerOpen {
						t.Fatalf("%v after %d requests", err, calls.Load())
					}
				}
				if _, err := get(t.Context(), client); ReasonOf(err) != BreakerOpen || calls.Load() != failuresToOpen {
					t.Errorf("%v after %d requests", err, calls.Load())
				}
			})
		})
	}
}

// The log is what the team on call and the local page know of a breaker.
func TestBreaker_LogsEveryStateChange(t *testing.T) {
	var log bytes.Buffer
	before := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(&log, nil)))
	defer slog.SetDefault(before)
	server := respondInOrder(respondStatus(500), respondStatus(500), respondStatus(500), respondStatus(500), respondStatus(500), respondGood, respondGood)
	bubble(t, oneSecond, server, func(t *testing.T, c *client, _ *atomic.Int32) {
		for range failuresToOpen {
			get(t.Context(), c)
		}
		<-time.After(openTimeout + ms)
		for range 2 {
			if _, err := get(t.Context(), c); err != nil {
				t.Fatal(err)
			}
		}
		for _, change := range []string{"from=closed to=open", "from=open to=half-open", "from=half-open to=closed"} {
			if want := "upstream=" + c.name + " " + change; strings.Count(log.String(), want) != 1 {
				t.Errorf("%s is not there once:\n%s", want, log.String())
			}
		}
		if n := strings.Count(log.String(), "\n"); n != 3 {
			t.Errorf("%d records:\n%s", n, log.String())
		}
	})
}

func TestBreaker_HalfOpensAfterFourSeconds(t *testing.T) {
	t.Parallel()
	server := respondInOrder(respondStatus(500), respondStatus(500), respondStatus(500), respondStatus(500), respondStatus(500), respondStatus(500), respondAfter(500*ms, respondGood), respondGood)
	bubble(t, oneSecond, server, func(t *testing.T, c *client, calls *atomic.Int32) {
		for range failuresToOpen {
			get(t.Context(), c)
		}
		<-time.After(openTimeout - ms)
		if _, err := get(t.Context(), c); ReasonOf(err) != BreakerOpen {
			t.Fatalf("too early: %v", err)
		}
		<-time.After(2 * ms)
		if _, err := get(t.Context(), c); ReasonOf(err) != Unavailable {
			t.Fatalf("the probe: %v", err)
		}
		if _, err := get(t.Context(), c); ReasonOf(err) != BreakerOpen {
			t.Fatalf("a failed probe closes nothing: %v", err)
		}
		<-time.After(openTimeout + ms)

		probe := make(chan error, 1)
		go func() {
			_, err := get(t.Context(), c)
			probe <- err
		}()
		synctest.Wait() // until the probe is at the server
		if _, err := get(t.Context(), c); ReasonOf(err) != BreakerOpen {
			t.Errorf("beside the probe: %v", err)
		}
		if err := <-probe; err != nil {
			t.Errorf("the probe: %v", err)
		}
		if _, err := get(t.Context(), c); err != nil || calls.Load() != 8 {
			t.Errorf("after a good probe: %v after %d requests", err, calls.Load())
		}
	})
}

func TestBreaker_CountsOnlyUpstreamFaults(t *testing.T) {
	t.Parallel()
	soon := func(ctx context.Context) (context.Context, context.CancelFunc) {
		ctx, cancel := context.WithCancel(ctx)
		time.AfterFunc(900*ms, cancel)
		return ctx, cancel
	}
	within := func(d time.Duration) func(context.Context) (context.Context, context.CancelFunc) {
		return func(ctx context.Context) (context.Context, context.CancelFunc) { return context.WithTimeout(ctx, d) }
	}
	for _, c := range []struct {
		name   string
		server http.HandlerFunc
		limit  func(context.Context) (context.Context, context.CancelFunc)
		counts bool
	}{
		{"404", respondStatus(404), context.WithCancel, false},
		{"400", respondStatus(400), context.WithCancel, false},
		{"403", respondStatus(403), context.WithCancel, false},
		{"429", respondStatus(429), context.WithCancel, false},
		{"a caller that left", hang, soon, false},
		{"a try that had little time", hang, within(499 * ms), false},
		{"a try that had half of what is granted", hang, within(500 * ms), true},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, oneSecond, c.server, func(t *testing.T, client *client, calls *atomic.Int32) {
				for range 2 * failuresToOpen {
					ctx, cancel := c.limit(t.Context())
					get(ctx, client)
					cancel()
				}
				want := int32(2 * failuresToOpen)
				if c.counts {
					want = failuresToOpen
				}
				if n := calls.Load(); n != want {
					t.Errorf("%d requests, want %d", n, want)
				}
			})
		})
	}
}

func TestBreaker_SuccessResetsFailureCount(t *testing.T) {
	t.Parallel()
	server := respondInOrder(respondStatus(500), respondStatus(500), respondStatus(500), respondStatus(500), respondStatus(404), respondStatus(500), respondStatus(500), respondStatus(500), respondStatus(500), respondGood)
	bubble(t, oneSecond, server, func(t *testing.T, c *client, calls *atomic.Int32) {
		for range 9 {
			get(t.Context(), c)
		}
		if _, err := get(t.Context(), c); err != nil {
			t.Error(err)
		}
	})
}

func TestBreaker_IgnoresLosingAttempt(t *testing.T) {
	t.Parallel()
	var n atomic.Int32
	server := func(w http.ResponseWriter, r *http.Request) {
		if n.Add(1)%2 == 1 {
			hang(w, r) // every first try
			return
		}
		respondGood(w, r)
	}
	bubble(t, policy{timeout: 1500 * ms, hedgeDelay: 800 * ms}, server, func(t *testing.T, c *client, calls *atomic.Int32) {
		for range 2 * failuresToOpen {
			if _, err := get(t.Context(), c); err != nil {
				t.Fatal(err)
			}
			synctest.Wait() // for the loser to be gone
		}
		if n := c.breaker.Counts().TotalFailures; n != 0 {
			t.Errorf("%d failures counted", n)
		}
	})
}

func TestBreaker_RefusedRetryIsNotTheReportedReason(t *testing.T) {
	t.Parallel()
	bubble(t, policy{timeout: 1500 * ms, hedgeDelay: 800 * ms}, respondInOrder(hang, respondStatus(500)), func(t *testing.T, c *client, calls *atomic.Int32) {
		silent := make(chan error, 1)
		go func() {
			_, err := get(t.Context(), c)
			silent <- err
		}()
		synctest.Wait() // until it is at the server
		for range failuresToOpen {
			get(t.Context(), c)
		}
		if err := <-silent; ReasonOf(err) != Timeout || calls.Load() != 1+failuresToOpen {
			t.Errorf("%v after %d requests", err, calls.Load())
		}
	})
}

func TestBreaker_IsPerUpstream(t *testing.T) {
	t.Parallel()
	u := newTestUpstreams(t, "http://127.0.0.1:1", nil)
	for range failuresToOpen {
		u.Theme.Brand(t.Context(), kabulTenant)
	}
	if _, err := u.Theme.Brand(t.Context(), kabulTenant); ReasonOf(err) != BreakerOpen {
		t.Errorf("theme: %v", err)
	}
	if _, err := u.Property.Get(t.Context(), kabulHotel, "en"); ReasonOf(err) != Unavailable {
		t.Errorf("property: %v", err)
	}
}
