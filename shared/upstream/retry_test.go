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

// respondAfter answers like next, d later, unless the caller leaves before.
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
	walled := policy{timeout: 800 * ms, totalTimeout: 800 * ms}
	hedged := policy{timeout: 1500 * ms, hedgeDelay: 800 * ms}
	for _, c := range []struct {
		name   string
		policy policy
		server http.HandlerFunc
		reason Reason // "": a good answer
		calls  int32
		took   time.Duration
	}{
		{"a good answer is returned at once", plain, respondGood, "", 1, 0},
		{"503 is tried once more", plain, respondInOrder(respondStatus(503), respondGood), "", 2, 0},
		{"502 is tried once more", plain, respondInOrder(respondStatus(502), respondGood), "", 2, 0},
		{"504 is tried once more", plain, respondInOrder(respondStatus(504), respondGood), "", 2, 0},
		{"a dropped connection is tried once more", plain, respondInOrder(dropConnection, respondGood), "", 2, 0},
		{"a try is given up at its own limit and repeated", plain, respondInOrder(hang, respondGood), "", 2, 1000 * ms},
		{"there is no third try", plain, respondStatus(503), Unavailable, 2, 0},
		{"there is no third try after silence either", plain, hang, Timeout, 2, 2000 * ms},
		{"the first failure is told, not the second", plain, respondInOrder(respondStatus(503), hang), Unavailable, 2, 1000 * ms},

		{"both tries share a wall", walled, respondInOrder(respondAfter(500*ms, respondStatus(503)), hang), Unavailable, 2, 800 * ms},
		{"behind the wall there is no second try", walled, hang, Timeout, 1, 800 * ms},

		{"silence starts a second try beside the first", hedged, respondInOrder(hang, respondAfter(100*ms, respondGood)), "", 2, 900 * ms},
		{"the first may still win", hedged, respondInOrder(respondAfter(1000*ms, respondGood), hang), "", 2, 1000 * ms},
		{"no silence, no second try", hedged, respondAfter(799*ms, respondGood), "", 1, 799 * ms},
		{"a failed second try leaves the first running", hedged, respondInOrder(respondAfter(1200*ms, respondGood), respondStatus(503)), "", 2, 1200 * ms},
		{"a bad second answer leaves the first running", hedged, respondInOrder(respondAfter(1200*ms, respondGood), respondJSON([]byte("{"))), "", 2, 1200 * ms},
		{"a failed first try leaves the second running", hedged, respondInOrder(respondAfter(900*ms, respondStatus(503)), respondAfter(500*ms, respondGood)), "", 2, 1300 * ms},
		{"after a failure silence starts nothing more", hedged, respondInOrder(respondStatus(503), hang), Unavailable, 2, 1500 * ms},
		{"two tries are all, however silent", hedged, hang, Timeout, 2, 2300 * ms},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, c.policy, c.server, func(t *testing.T, client *client, calls *atomic.Int32) {
				began := time.Now()
				_, err := get(t.Context(), client)
				if reason := ReasonOf(err); reason != c.reason || err != nil && reason == "" {
					t.Errorf("error: %v, want reason %q", err, c.reason)
				}
				if took := time.Since(began); took != c.took {
					t.Errorf("took %v, want %v", took, c.took)
				}
				if n := calls.Load(); n != c.calls {
					t.Errorf("%d requests, want %d", n, c.calls)
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
		{"a 404 that is not JSON", html404, BadResponse},
		{"204", func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(204) }, BadResponse},
		{"no JSON", respondJSON([]byte("<html>")), BadResponse},
		{"nothing", respondJSON(nil), BadResponse},
		{"truncated JSON", respondJSON([]byte(`{"value":"go`)), BadResponse},
		{"trailing data", respondJSON([]byte(`{"value":"good"}{}`)), BadResponse},
		{"a wrong type", respondJSON([]byte(`{"value":7}`)), BadResponse},
		{"another shape", respondJSON([]byte(`[]`)), BadResponse},
		{"a name in another case", respondJSON([]byte(`{"Value":"good"}`)), BadResponse},
		{"a name twice", respondJSON([]byte(`{"value":"bad","value":"good"}`)), BadResponse},
		{"not UTF-8", respondJSON([]byte("{\"value\":\"good\",\"x\":\"\xff\"}")), BadResponse},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, policy{timeout: time.Second}, c.server, func(t *testing.T, client *client, calls *atomic.Int32) {
				if _, err := get(t.Context(), client); ReasonOf(err) != c.reason || errors.Is(err, ErrNotFound) {
					t.Errorf("error: %v, want reason %q", err, c.reason)
				}
				if n := calls.Load(); n != 1 {
					t.Errorf("%d requests", n)
				}
			})
		})
	}
}

func TestWithRetry_NotFoundIsNotRetried(t *testing.T) {
	t.Parallel()
	bubble(t, policy{timeout: time.Second}, respondStatus(404), func(t *testing.T, c *client, calls *atomic.Int32) {
		if _, err := get(t.Context(), c); !errors.Is(err, ErrNotFound) || ReasonOf(err) != "" || calls.Load() != 1 {
			t.Errorf("%v after %d requests", err, calls.Load())
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
	ask := func(t *testing.T, c *client, _ *atomic.Int32) {
		if _, err := get(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		select {
		case <-cancelled:
		default:
			t.Error("the first try goes on")
		}
	}
	bubble(t, policy{timeout: 1500 * ms, hedgeDelay: 800 * ms}, respondInOrder(first, respondGood), ask)
}

func TestWithRetry_SendsRemainingDeadline(t *testing.T) {
	t.Parallel()
	told := make(chan int, 2)
	tell := func(next http.HandlerFunc) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			n, _ := strconv.Atoi(r.Header.Get("X-Request-Deadline-Ms"))
			told <- n
			next(w, r)
		}
	}
	for _, c := range []struct {
		name   string
		policy policy
		budget time.Duration
		want   [2]int
	}{
		{"the limit of a try", policy{timeout: 600 * ms}, 2500 * ms, [2]int{600, 600}},
		{"what the wall leaves", policy{timeout: 800 * ms, totalTimeout: 800 * ms}, 2500 * ms, [2]int{800, 500}},
		{"what the request leaves", policy{timeout: 1000 * ms}, 700 * ms, [2]int{700, 400}},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, c.policy, tell(respondAfter(300*ms, respondStatus(503))), func(t *testing.T, client *client, _ *atomic.Int32) {
				ctx, cancel := context.WithTimeout(t.Context(), c.budget)
				defer cancel()
				get(ctx, client)
				if got := [2]int{<-told, <-told}; got != c.want {
					t.Errorf("told %v, want %v", got, c.want)
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
		{"nothing is asked when no answer could come in time", respondGood, minRemaining - ms, Budget, 0},
		{"nothing is asked when it is over", respondGood, 0, Budget, 0},
		{"the deadline of the request ends a try", hang, 300 * ms, Budget, 1},
		{"no second try without time for it", respondAfter(290*ms, respondStatus(503)), 300 * ms, Unavailable, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, policy{timeout: time.Second}, c.server, func(t *testing.T, client *client, calls *atomic.Int32) {
				ctx, cancel := context.WithTimeout(t.Context(), c.budget)
				defer cancel()
				_, err := get(ctx, client)
				if ReasonOf(err) != c.reason || calls.Load() != c.calls {
					t.Errorf("%v after %d requests", err, calls.Load())
				}
				if errors.Is(err, context.DeadlineExceeded) != (c.reason == Budget) {
					t.Errorf("%v: only a spent budget is the deadline of the request", err)
				}
			})
		})
	}
}

func TestWithRetry_UpstreamTimeoutIsNotRequestDeadline(t *testing.T) {
	t.Parallel()
	bubble(t, policy{timeout: time.Second}, hang, func(t *testing.T, c *client, _ *atomic.Int32) {
		if _, err := get(t.Context(), c); errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
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
			t.Error(err)
		}
		if _, err := get(ctx, c); !errors.Is(err, context.Canceled) || calls.Load() != 1 {
			t.Errorf("%v after %d requests", err, calls.Load())
		}
	})
}
