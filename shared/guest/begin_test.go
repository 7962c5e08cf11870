package guest_test

import (
	"context"
	"fmt"
	"net"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"melmastoon.ghasi.io/bff-consumer/shared/testkit/functest"
)

func TestControllerBegin_UsesOneRoundTrip(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		flags  string
		limits bool
	}{
		"gate off":            {gateOff, false},
		"limits on":           {allClasses(unlimited, "off"), true},
		"limits and bots on":  {allClasses(unlimited, "enforce"), true},
		"bots on, limits off": {`{"limitsEnabled":false,"botMode":"enforce"}`, false},
		"bots observed":       {allClasses(unlimited, "observe"), true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHarness(t, c.flags)
			cookie := h.MustDo(204, "GET", "/read", "", "").SessionCookie()
			h.MustDo(204, "GET", "/read", cookie, "") // loads the scripts
			h.MustDo(204, "GET", "/shared", "", "")
			h.Advance(10 * time.Second)
			for _, path := range []string{"/read", "/shared"} {
				h.RoundTrips.TakeCount()
				a := h.MustDo(204, "GET", path, cookie, "")
				if got := h.RoundTrips.TakeCount(); got != 1 {
					t.Errorf("%s took %d round trips, want 1", path, got)
				}
				if got, want := a.Header.Get("RateLimit") != "", c.limits && path == "/read"; got != want {
					t.Errorf("%s has rate-limit headers: %t, want %t", path, got, want)
				}
			}
		})
	}
}

// commandRecorder records the arguments of all commands to Redis.
type commandRecorder struct {
	mu   sync.Mutex
	sent strings.Builder
}

func (c *commandRecorder) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) { return next(ctx, network, addr) }
}

func (c *commandRecorder) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		c.record(cmd)
		return next(ctx, cmd)
	}
}

func (c *commandRecorder) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		c.record(cmds...)
		return next(ctx, cmds)
	}
}

func (c *commandRecorder) record(cmds ...redis.Cmder) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, cmd := range cmds {
		for _, arg := range cmd.Args() {
			fmt.Fprintf(&c.sent, "%s\n", arg)
		}
	}
}

func TestControllerBegin_StoresNoRawAddressOrUserAgent(t *testing.T) {
	t.Parallel()
	const clients = 500 // each with an IPv4 and an IPv6 address
	h := newHarness(t, allClasses(`{"cookie":1000000,"ip":4,"fingerprint":1000000}`, "off"))
	c := &commandRecorder{}
	h.Deps.Redis.AddHook(c)
	var canaries []string
	rejected := 0
	for n := range clients {
		v4, v6 := fmt.Sprintf("203.0.%d.%d", 100+n/250, 1+n%250), fmt.Sprintf("2001:db8:%x:%x::", 0xa000+n, 0xb000+n)
		agent := fmt.Sprintf("Canary%d/1.0 (singing %d)", n, n)
		canaries = append(canaries, v4, strings.TrimSuffix(v6, "::"), agent, "singing "+strconv.Itoa(n))
		for _, addr := range []string{v4 + ":1", "[" + v6 + "1]:1"} {
			for _, path := range []string{"/read", "/shared"} { // the limit rejects the second request
				r := httptest.NewRequest("GET", path, nil)
				r.RemoteAddr = addr
				r.Header.Set("User-Agent", agent)
				if h.Send(r).StatusCode == 429 {
					rejected++
				}
			}
		}
	}
	stores := map[string]string{
		"Redis": c.sent.String(), "the log": h.Log.String(),
		"Postgres": functest.QueryValue[string](h.Harness, "SELECT string_agg(o::text, ' ') FROM bff_consumer.outbox o"),
	}
	if rejected != 2*clients {
		t.Errorf("%d requests were rejected, want %d", rejected, 2*clients)
	}
	for _, want := range []struct {
		store, text string
		count       int
	}{
		{"Redis", ":rl:{read:address:", 4 * clients}, {"the log", "RATE_LIMITED", 2 * clients}, {"Postgres", "session.started", 2 * clients},
	} {
		if got := strings.Count(stores[want.store], want.text); got < want.count {
			t.Errorf("%s contains %q %d times, want at least %d: the requests did not reach it", want.store, want.text, got, want.count)
		}
	}
	for store, text := range stores {
		for _, canary := range canaries {
			if strings.Contains(text, canary) {
				t.Errorf("%s contains %s", store, canary)
			}
		}
	}
}

func TestControllerBegin_WithoutRedisAdmitsGuestWithDegradedSession(t *testing.T) {
	t.Parallel()
	h := newHarness(t, gateOff)
	cookie := h.MustDo(204, "GET", "/read", "", "").SessionCookie()
	h.Redis.Stop()
	a := h.MustDo(204, "GET", "/read", cookie, "")
	if got := a.SessionCookie(); got != cookie {
		t.Errorf("cookie %q, want %q", got, cookie)
	}
	if got := h.Log.Last(t)["session"]; got != "degraded" {
		t.Errorf("log field session is %v, want degraded", got)
	}
	h.MustDo(204, "GET", "/shared", "", "")
}
