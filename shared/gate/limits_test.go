package gate_test

import (
	"context"
	"fmt"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"melmastoon.ghasi.io/bff-consumer/shared/testkit/functest"
)

// Four requests a minute have a burst of one.
const (
	unlimited      = `{"cookie":1000000,"ip":1000000,"fingerprint":1000000}`
	fourPerCookie  = `{"cookie":4,"ip":1000000,"fingerprint":1000000}`
	fourPerDevice  = `{"cookie":1000000,"ip":1000000,"fingerprint":4}`
	fourPerAddress = `{"cookie":1000000,"ip":4,"fingerprint":1000000}`
)

var personalClasses = []string{"read", "handoff", "telemetry"}

// requireLimitedBy fails the test unless the response is a rejection by a policy of four a minute,
// with the retry time in every header and in the body.
func requireLimitedBy(t *testing.T, a *functest.Result, policy string) {
	t.Helper()
	wait, err := strconv.Atoi(a.Header.Get("Retry-After"))
	if a.StatusCode != 429 || !strings.HasSuffix(a.Code, ".RATE_LIMITED") || !a.Retriable || err != nil || wait < 1 || wait > 15 {
		t.Fatalf("got %d %s with Retry-After %v, want 429 RATE_LIMITED with 1 to 15 s", a.StatusCode, a.Text, a.Header["Retry-After"])
	}
	if want := fmt.Sprintf(`"retryAfter":%d,`, wait); !strings.Contains(a.Text, want) {
		t.Errorf("body %s, want %s in it", a.Text, want)
	}
	for name, want := range map[string]string{
		"RateLimit-Limit": "4", "RateLimit-Remaining": "0", "RateLimit-Reset": fmt.Sprint(wait),
		"RateLimit": fmt.Sprintf(`"%s";r=0;t=%d`, policy, wait), "RateLimit-Policy": fmt.Sprintf(`"%s";q=4;w=60`, policy),
	} {
		if got := a.Header.Get(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
}

// requireRemaining fails the test unless the response tells this remaining quota.
func requireRemaining(t *testing.T, a *functest.Result, want string) {
	t.Helper()
	if got := a.Header.Get("RateLimit-Remaining"); got != want {
		t.Errorf("RateLimit-Remaining is %q, want %q", got, want)
	}
}

func TestGateLimits_EachClassHasItsOwnBucket(t *testing.T) {
	t.Parallel()
	for _, class := range personalClasses {
		t.Run(class, func(t *testing.T) {
			t.Parallel()
			h := newHarness(t, allClasses(fourPerCookie))
			cookie := h.MustDo(204, "GET", "/"+class, "", "").SessionCookie()
			a := h.MustDo(204, "GET", "/"+class, cookie, "")
			if got, want := a.Header.Get("RateLimit-Policy"), `"`+class+`-cookie";q=4;w=60`; got != want {
				t.Errorf("RateLimit-Policy is %s, want %s", got, want)
			}
			requireRemaining(t, a, "0")
			requireLimitedBy(t, h.Do("GET", "/"+class, cookie, ""), class+"-cookie")
			if got, want := h.Log.Last(t)["limited"], class+"-cookie"; got != want {
				t.Errorf("log field limited is %v, want %s", got, want)
			}
			for _, other := range personalClasses {
				if other != class {
					h.MustDo(204, "GET", "/"+other, cookie, "")
				}
			}
			h.MustDo(204, "GET", "/"+class, "", "") // another guest
		})
	}
}

func TestGateLimits_RejectedRequestDoesNoWork(t *testing.T) {
	t.Parallel()
	h := newHarness(t, allClasses(fourPerAddress))
	h.MustDo(204, "GET", "/read", "", "")
	events := h.Count("outbox")
	h.RoundTrips.TakeCount()
	requireLimitedBy(t, h.Do("GET", "/read", "", ""), "read-address")
	if got := h.RoundTrips.TakeCount(); got > 3 {
		t.Errorf("%d round trips, want at most 3: charge, refund, and once loading the refund script", got)
	}
	requireLimitedBy(t, h.Do("GET", "/read", "", ""), "read-address")
	if got := h.RoundTrips.TakeCount(); got != 2 {
		t.Errorf("%d round trips, want 2: charge and refund", got)
	}
	if h.admitted != 1 {
		t.Errorf("the gate admitted %d requests, want 1", h.admitted)
	}
	if got := h.Count("outbox"); got != events {
		t.Errorf("%d events after the rejection, want %d", got, events)
	}
}

func TestGateLimits_CostNoRoundTripOfTheirOwn(t *testing.T) {
	t.Parallel()
	const off = `{"limitsEnabled":false,"botMode":"off"}`
	for name, flags := range map[string]string{
		"limits and enforced bot mode": observing(allClasses(unlimited), "enforce"), "limits alone": allClasses(unlimited), "all off": off,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHarness(t, flags)
			cookie := h.MustDo(204, "GET", "/read", "", "").SessionCookie()
			h.MustDo(204, "GET", "/read", cookie, "")
			h.Do("GET", "/shared", "", "")
			h.Advance(10 * time.Second)
			for _, path := range []string{"/read", "/handoff", "/telemetry", "/shared"} {
				h.RoundTrips.TakeCount()
				a := h.Do("GET", path, cookie, "")
				if trips := h.RoundTrips.TakeCount(); a.StatusCode >= 300 || trips != 1 {
					t.Errorf("%s: got %d in %d round trips, want success in 1", path, a.StatusCode, trips)
				}
				if got, want := a.Header.Get("RateLimit") != "", path != "/shared" && flags != off; got != want {
					t.Errorf("%s has rate-limit headers: %t, want %t", path, got, want)
				}
			}
		})
	}
}

func TestGateLimits_ErrorResponsesCountAndCarryHeaders(t *testing.T) {
	t.Parallel()
	t.Run("not found after Begin", func(t *testing.T) {
		t.Parallel()
		h := newHarness(t, allClasses(fourPerCookie))
		cookie := h.MustDo(204, "GET", "/read", "", "").SessionCookie()
		requireRemaining(t, h.MustDo(404, "GET", "/absent", cookie, ""), "0")
		requireLimitedBy(t, h.Do("GET", "/malformed", cookie, ""), "read-cookie")
	})
	t.Run("malformed before Begin", func(t *testing.T) {
		t.Parallel()
		h := newHarness(t, allClasses(fourPerCookie))
		cookie := h.MustDo(204, "GET", "/read", "", "").SessionCookie()
		requireRemaining(t, h.MustDo(400, "GET", "/malformed", cookie, ""), "0")
		requireLimitedBy(t, h.Do("GET", "/malformed", cookie, ""), "read-cookie")
		requireLimitedBy(t, h.Do("GET", "/read", cookie, ""), "read-cookie")
	})
	t.Run("query parameter", func(t *testing.T) {
		t.Parallel()
		h := newHarness(t, allClasses(fourPerCookie))
		cookie := h.MustDo(204, "GET", "/read", "", "").SessionCookie()
		requireRemaining(t, h.MustDo(422, "GET", "/read?x=1", cookie, ""), "0")
		requireLimitedBy(t, h.Do("GET", "/read?x=1", cookie, ""), "read-cookie")
	})
}

func TestGateLimits_SharedRouteIgnoresCookie(t *testing.T) {
	t.Parallel()
	h := newHarness(t, allClasses(fourPerCookie))
	cookie := h.MustDo(204, "GET", "/handoff", "", "").SessionCookie()
	for range 5 {
		first := h.MustDo(200, "GET", "/shared", cookie, "")
		notModified := h.MustDo(304, "GET", "/shared", cookie, "", "If-None-Match", first.Header.Get("ETag"))
		if got := first.Header.Get("Cache-Control"); !strings.HasPrefix(got, "public") {
			t.Errorf("Cache-Control is %q, want public", got)
		}
		for _, a := range []*functest.Result{first, notModified} {
			for _, name := range []string{"Set-Cookie", "RateLimit", "RateLimit-Limit"} {
				if got := a.Header.Get(name); got != "" {
					t.Errorf("%d has %s %q, want none", a.StatusCode, name, got)
				}
			}
		}
	}
}

func TestGateLimits_SharedRouteCountsAddressAndDevice(t *testing.T) {
	t.Parallel()
	for policy, flags := range map[string]string{"read-address": allClasses(fourPerAddress), "read-fingerprint": allClasses(fourPerDevice)} {
		t.Run(policy, func(t *testing.T) {
			t.Parallel()
			h := newHarness(t, flags)
			h.MustDo(200, "GET", "/shared", "", "")
			requireLimitedBy(t, h.Do("GET", "/shared", "", ""), policy)
			requireLimitedBy(t, h.Do("GET", "/read", "", ""), policy) // the same class
			h.MustDo(204, "GET", "/telemetry", "", "")
		})
	}
}

// getFrom sends a GET from an address, with the user agent of a browser.
func (h *harness) getFrom(addr, agent, path string) *functest.Result {
	h.T.Helper()
	r := httptest.NewRequest("GET", path, nil)
	r.RemoteAddr = addr
	r.Header.Set("User-Agent", agent)
	return h.Send(r)
}

func TestGateLimits_GroupByAddressAndByDeviceAtAddress(t *testing.T) {
	t.Parallel()
	type request struct {
		addr, agent string
		want        int
	}
	for name, c := range map[string]struct {
		flags    string
		requests []request
	}{
		"address": {allClasses(fourPerAddress), []request{
			{"192.0.2.1:1", functest.Firefox, 204}, {"192.0.2.1:2", functest.Firefox, 429},
			{"192.0.2.2:1", functest.Firefox, 204}, {"[::ffff:192.0.2.2]:1", functest.Firefox, 429},
			// one /64
			{"[2001:db8::1]:1", functest.Firefox, 204}, {"[2001:db8::ffff:1]:1", functest.Firefox, 429},
			{"[2001:db8:0:1::1]:1", functest.Firefox, 204},
		}},
		"device at an address": {allClasses(fourPerDevice), []request{
			{"192.0.2.1:1", functest.Firefox, 204}, {"192.0.2.1:1", functest.Firefox, 429}, {"192.0.2.1:1", functest.IPhone, 204},
			{"192.0.2.2:1", functest.IPhone, 204}, // a phone model of half a country
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHarness(t, c.flags)
			for _, r := range c.requests {
				if got := h.getFrom(r.addr, r.agent, "/read").StatusCode; got != r.want {
					t.Errorf("%s from %s: got %d, want %d", r.agent, r.addr, got, r.want)
				}
			}
		})
	}
}

func TestGateLimits_WithoutRedisLimitPerInstance(t *testing.T) {
	t.Parallel()
	h := newHarness(t, allClasses(`{"cookie":40,"ip":1000000,"fingerprint":1000000}`))
	cookie := h.MustDo(204, "GET", "/read", "", "").SessionCookie()
	h.Redis.Stop()
	for n := range 10 { // the clock stands still
		requireRemaining(t, h.MustDo(204, "GET", "/read", cookie, ""), fmt.Sprint(9-n))
	}
	a := h.MustDo(429, "GET", "/read", cookie, "")
	if got := a.Header.Get("Retry-After"); got != "2" {
		t.Errorf("Retry-After is %q, want 2", got)
	}
	h.Advance(1500 * time.Millisecond)
	h.MustDo(204, "GET", "/read", cookie, "")
	for n := range 100 {
		if a := h.getFrom(fmt.Sprintf("192.0.2.%d:1", n), functest.Firefox, "/shared"); a.StatusCode != 200 {
			t.Fatalf("client %d: got %d %s, want 200", n, a.StatusCode, a.Text)
		}
	}
}

// A client that hangs up before the response is charged all the same.
func TestGateLimits_CountDisconnectedClients(t *testing.T) {
	t.Parallel()
	for path, countsCadence := range map[string]bool{"/read": true, "/shared": false, "/malformed": true} {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			h := newHarness(t, observing(allClasses(fourPerAddress), "observe"))
			ctx, hangUp := context.WithCancel(t.Context())
			hangUp()
			h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(ctx, "GET", path, nil))
			if got := len(h.RDB.Keys(t.Context(), "*:bot:cadence:*").Val()) > 0; got != countsCadence {
				t.Errorf("the request counts towards the cadence: %t, want %t", got, countsCadence)
			}
			if a := h.Send(httptest.NewRequestWithContext(t.Context(), "GET", path, nil)); a.StatusCode != 429 {
				t.Errorf("the next request: got %d, want 429", a.StatusCode)
			}
		})
	}
}
