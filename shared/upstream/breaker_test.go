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
		calls  int // calls until the breaker opens; a call with two failed tries counts twice
	}{
		{"failures without a retry", respondStatus(500), 5},
		{"failures with a retry", respondStatus(503), 3},
		{"dropped connections", dropConnection, 3},
		{"timeouts", hang, 3},
		{"bad responses", respondJSON([]byte(`{"value":1}`)), 5},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, oneSecond, c.server, func(t *testing.T, client *client, calls *atomic.Int32) {
				for range c.calls {
					if _, err := get(t.Context(), client); ReasonOf(err) == "" || ReasonOf(err) == BreakerOpen {
						t.Fatalf("got %v after %d requests, want a failure before the breaker opens", err, calls.Load())
					}
				}
				if _, err := get(t.Context(), client); ReasonOf(err) != BreakerOpen || calls.Load() != failuresToOpen {
					t.Errorf("got %v after %d requests, want breaker-open after %d", err, calls.Load(), failuresToOpen)
				}
			})
		})
	}
}

// The team on call and the local web page know the state of a breaker only from the log.
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
				t.Errorf("got log without exactly one %q:\n%s", want, log.String())
			}
		}
		if n := strings.Count(log.String(), "\n"); n != 3 {
			t.Errorf("got %d log records, want 3:\n%s", n, log.String())
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
			t.Fatalf("during the pause: got %v, want breaker-open", err)
		}
		<-time.After(2 * ms)
		if _, err := get(t.Context(), c); ReasonOf(err) != Unavailable {
			t.Fatalf("first probe: got %v, want unavailable", err)
		}
		if _, err := get(t.Context(), c); ReasonOf(err) != BreakerOpen {
			t.Fatalf("after a failed probe: got %v, want breaker-open", err)
		}
		<-time.After(openTimeout + ms)

		probe := make(chan error, 1)
		go func() {
			_, err := get(t.Context(), c)
			probe <- err
		}()
		synctest.Wait() // the probe has reached the server
		if _, err := get(t.Context(), c); ReasonOf(err) != BreakerOpen {
			t.Errorf("call during the probe: got %v, want breaker-open", err)
		}
		if err := <-probe; err != nil {
			t.Errorf("second probe: got %v, want nil", err)
		}
		if _, err := get(t.Context(), c); err != nil || calls.Load() != 8 {
			t.Errorf("after a successful probe: got %v after %d requests, want nil after 8", err, calls.Load())
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
		{"cancelled caller", hang, soon, false},
		{"timeout with less than half of the time limit", hang, within(499 * ms), false},
		{"timeout with half of the time limit", hang, within(500 * ms), true},
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
					t.Errorf("got %d requests, want %d", n, want)
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
			t.Errorf("got %v, want a closed breaker", err)
		}
	})
}

func TestBreaker_IgnoresLosingAttempt(t *testing.T) {
	t.Parallel()
	var n atomic.Int32
	server := func(w http.ResponseWriter, r *http.Request) {
		if n.Add(1)%2 == 1 {
			hang(w, r) // the first try of every call
			return
		}
		respondGood(w, r)
	}
	bubble(t, policy{timeout: 1500 * ms, hedgeDelay: 800 * ms}, server, func(t *testing.T, c *client, calls *atomic.Int32) {
		for range 2 * failuresToOpen {
			if _, err := get(t.Context(), c); err != nil {
				t.Fatal(err)
			}
			synctest.Wait() // the losing try has ended
		}
		if n := c.breaker.Counts().TotalFailures; n != 0 {
			t.Errorf("got %d failures, want 0", n)
		}
	})
}

func TestBreaker_RefusedRetryIsNotTheReportedReason(t *testing.T) {
	t.Parallel()
	bubble(t, policy{timeout: 1500 * ms, hedgeDelay: 800 * ms}, respondInOrder(hang, respondStatus(500)), func(t *testing.T, c *client, calls *atomic.Int32) {
		hung := make(chan error, 1)
		go func() {
			_, err := get(t.Context(), c)
			hung <- err
		}()
		synctest.Wait() // the first try has reached the server
		for range failuresToOpen {
			get(t.Context(), c)
		}
		if err := <-hung; ReasonOf(err) != Timeout || calls.Load() != 1+failuresToOpen {
			t.Errorf("got %v after %d requests, want timeout after %d", err, calls.Load(), 1+failuresToOpen)
		}
	})
}

func TestBreaker_IsPerUpstream(t *testing.T) {
	u := newTestUpstreams(t, "http://127.0.0.1:1", nil)
	for range failuresToOpen {
		u.Theme.Brand(t.Context(), kabulTenant)
	}
	if _, err := u.Theme.Brand(t.Context(), kabulTenant); ReasonOf(err) != BreakerOpen {
		t.Errorf("theme: got %v, want breaker-open", err)
	}
	if _, err := u.Property.Get(t.Context(), kabulHotel, "en"); ReasonOf(err) != Unavailable {
		t.Errorf("property: got %v, want unavailable", err)
	}
}
