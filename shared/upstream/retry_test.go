package upstream

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

const ms = time.Millisecond

// respondAfter responds like next after d, unless the caller cancels before.
func respondAfter(d time.Duration, next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-time.After(d):
			next(w, r)
		case <-r.Context().Done():
		}
	}
}

func TestWithRetry_FollowsPolicy(t *testing.T) {
	t.Parallel()
	plain := policy{timeout: 1000 * ms}
	totalLimited := policy{timeout: 800 * ms, totalTimeout: 800 * ms}
	hedged := policy{timeout: 1500 * ms, hedgeDelay: 800 * ms}
	for _, c := range []struct {
		name   string
		policy policy
		server http.HandlerFunc
		reason Reason // "": success
		calls  int32
		took   time.Duration
	}{
		{"success is returned at once", plain, respondGood, "", 1, 0},
		{"503 is retried once", plain, respondInOrder(respondStatus(503), respondGood), "", 2, 0},
		{"502 is retried once", plain, respondInOrder(respondStatus(502), respondGood), "", 2, 0},
		{"504 is retried once", plain, respondInOrder(respondStatus(504), respondGood), "", 2, 0},
		{"dropped connection is retried once", plain, respondInOrder(dropConnection, respondGood), "", 2, 0},
		{"timed-out try is retried", plain, respondInOrder(hang, respondGood), "", 2, 1000 * ms},
		{"no third try after failures", plain, respondStatus(503), Unavailable, 2, 0},
		{"no third try after timeouts", plain, hang, Timeout, 2, 2000 * ms},
		{"first failure is reported", plain, respondInOrder(respondStatus(503), hang), Unavailable, 2, 1000 * ms},

		{"both tries share the total timeout", totalLimited, respondInOrder(respondAfter(500*ms, respondStatus(503)), hang), Unavailable, 2, 800 * ms},
		{"no second try after the total timeout", totalLimited, hang, Timeout, 1, 800 * ms},

		{"hedge starts a second try in parallel", hedged, respondInOrder(hang, respondAfter(100*ms, respondGood)), "", 2, 900 * ms},
		{"first try may still win", hedged, respondInOrder(respondAfter(1000*ms, respondGood), hang), "", 2, 1000 * ms},
		{"no hedge for a response in time", hedged, respondAfter(799*ms, respondGood), "", 1, 799 * ms},
		{"failed second try leaves the first running", hedged, respondInOrder(respondAfter(1200*ms, respondGood), respondStatus(503)), "", 2, 1200 * ms},
		{"bad second response leaves the first running", hedged, respondInOrder(respondAfter(1200*ms, respondGood), respondJSON([]byte("{"))), "", 2, 1200 * ms},
		{"failed first try leaves the second running", hedged, respondInOrder(respondAfter(900*ms, respondStatus(503)), respondAfter(500*ms, respondGood)), "", 2, 1300 * ms},
		{"no hedge after a retry", hedged, respondInOrder(respondStatus(503), hang), Unavailable, 2, 1500 * ms},
		{"hedged call times out after two tries", hedged, hang, Timeout, 2, 2300 * ms},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, c.policy, c.server, func(t *testing.T, client *client, calls *atomic.Int32) {
				startedAt := time.Now()
				_, err := get(t.Context(), client)
				if reason := ReasonOf(err); reason != c.reason || err != nil && reason == "" {
					t.Errorf("got error %v, want reason %q", err, c.reason)
				}
				if took := time.Since(startedAt); took != c.took {
					t.Errorf("got duration %v, want %v", took, c.took)
				}
				if n := calls.Load(); n != c.calls {
					t.Errorf("got %d requests, want %d", n, c.calls)
				}
			})
		})
	}
}

func TestWithRetry_DoesNotRetryPermanentErrors(t *testing.T) {
	t.Parallel()
	html404 := func(w http.ResponseWriter, r *http.Request) { http.Error(w, "<h1>404</h1>", http.StatusNotFound) }
	for _, c := range []struct {
		name   string
		server http.HandlerFunc
		reason Reason
	}{
		{"500", respondStatus(500), Unavailable},
		{"501", respondStatus(501), Unavailable},
		{"429", respondStatus(429), Unavailable},
		{"400", respondStatus(400), BadResponse},
		{"401", respondStatus(401), BadResponse},
		{"403", respondStatus(403), BadResponse},
		{"404 that is not JSON", html404, BadResponse},
		{"204", func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(204) }, BadResponse},
		{"not JSON", respondJSON([]byte("<html>")), BadResponse},
		{"empty body", respondJSON(nil), BadResponse},
		{"truncated JSON", respondJSON([]byte(`{"value":"go`)), BadResponse},
		{"trailing data", respondJSON([]byte(`{"value":"good"}{}`)), BadResponse},
		{"wrong type", respondJSON([]byte(`{"value":7}`)), BadResponse},
		{"wrong shape", respondJSON([]byte(`[]`)), BadResponse},
		{"member name in wrong case", respondJSON([]byte(`{"Value":"good"}`)), BadResponse},
		{"duplicate member name", respondJSON([]byte(`{"value":"bad","value":"good"}`)), BadResponse},
		{"not UTF-8", respondJSON([]byte("{\"value\":\"good\",\"x\":\"\xff\"}")), BadResponse},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, policy{timeout: time.Second}, c.server, func(t *testing.T, client *client, calls *atomic.Int32) {
				if _, err := get(t.Context(), client); ReasonOf(err) != c.reason || errors.Is(err, ErrNotFound) {
					t.Errorf("got error %v, want reason %q", err, c.reason)
				}
				if n := calls.Load(); n != 1 {
					t.Errorf("got %d requests, want 1", n)
				}
			})
		})
	}
}

func TestWithRetry_NotFoundIsNotRetried(t *testing.T) {
	t.Parallel()
	bubble(t, policy{timeout: time.Second}, respondStatus(404), func(t *testing.T, c *client, calls *atomic.Int32) {
		if _, err := get(t.Context(), c); !errors.Is(err, ErrNotFound) || ReasonOf(err) != "" || calls.Load() != 1 {
			t.Errorf("got %v after %d requests, want ErrNotFound after 1", err, calls.Load())
		}
	})
}

func TestWithRetry_CancelsLosingAttempt(t *testing.T) {
	t.Parallel()
	cancelled := make(chan struct{})
	first := func(w http.ResponseWriter, r *http.Request) {
		<-r.Context().Done()
		close(cancelled)
	}
	check := func(t *testing.T, c *client, _ *atomic.Int32) {
		if _, err := get(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		select {
		case <-cancelled:
		default:
			t.Error("the losing try is still running")
		}
	}
	bubble(t, policy{timeout: 1500 * ms, hedgeDelay: 800 * ms}, respondInOrder(first, respondGood), check)
}

func TestWithRetry_SendsRemainingDeadline(t *testing.T) {
	t.Parallel()
	sent := make(chan int, 2)
	record := func(next http.HandlerFunc) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			n, _ := strconv.Atoi(r.Header.Get("X-Request-Deadline-Ms"))
			sent <- n
			next(w, r)
		}
	}
	for _, c := range []struct {
		name   string
		policy policy
		budget time.Duration
		want   [2]int
	}{
		{"timeout of a try", policy{timeout: 600 * ms}, 2500 * ms, [2]int{600, 600}},
		{"rest of the total timeout", policy{timeout: 800 * ms, totalTimeout: 800 * ms}, 2500 * ms, [2]int{800, 500}},
		{"rest of the request deadline", policy{timeout: 1000 * ms}, 700 * ms, [2]int{700, 400}},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, c.policy, record(respondAfter(300*ms, respondStatus(503))), func(t *testing.T, client *client, _ *atomic.Int32) {
				ctx, cancel := context.WithTimeout(t.Context(), c.budget)
				defer cancel()
				get(ctx, client)
				if got := [2]int{<-sent, <-sent}; got != c.want {
					t.Errorf("got deadlines %v ms, want %v", got, c.want)
				}
			})
		})
	}
}

func TestWithRetry_StopsAtRequestDeadline(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		server http.HandlerFunc
		budget time.Duration
		reason Reason
		calls  int32
	}{
		{"no request with too little time left", respondGood, minRemaining - ms, Budget, 0},
		{"no request after the deadline", respondGood, 0, Budget, 0},
		{"request deadline ends a try", hang, 300 * ms, Budget, 1},
		{"no second try with too little time left", respondAfter(290*ms, respondStatus(503)), 300 * ms, Unavailable, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, policy{timeout: time.Second}, c.server, func(t *testing.T, client *client, calls *atomic.Int32) {
				ctx, cancel := context.WithTimeout(t.Context(), c.budget)
				defer cancel()
				_, err := get(ctx, client)
				if ReasonOf(err) != c.reason || calls.Load() != c.calls {
					t.Errorf("got %v after %d requests, want reason %q after %d", err, calls.Load(), c.reason, c.calls)
				}
				if errors.Is(err, context.DeadlineExceeded) != (c.reason == Budget) {
					t.Errorf("got %v, want DeadlineExceeded only with reason budget", err)
				}
			})
		})
	}
}

func TestWithRetry_UpstreamTimeoutIsNotRequestDeadline(t *testing.T) {
	t.Parallel()
	bubble(t, policy{timeout: time.Second}, hang, func(t *testing.T, c *client, _ *atomic.Int32) {
		if _, err := get(t.Context(), c); errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want an error that is not the request deadline", err)
		}
	})
}

func TestWithRetry_CanceledCallerIsNoFault(t *testing.T) {
	t.Parallel()
	arrived := make(chan struct{})
	server := func(w http.ResponseWriter, r *http.Request) {
		close(arrived)
		hang(w, r)
	}
	bubble(t, policy{timeout: time.Second}, server, func(t *testing.T, c *client, calls *atomic.Int32) {
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			<-arrived
			cancel()
		}()
		_, err := get(ctx, c)
		if !errors.Is(err, context.Canceled) || ReasonOf(err) != "" {
			t.Errorf("got %v, want context.Canceled without a reason", err)
		}
		if _, err := get(ctx, c); !errors.Is(err, context.Canceled) || calls.Load() != 1 {
			t.Errorf("got %v after %d requests, want context.Canceled after 1", err, calls.Load())
		}
	})
}
