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

// four a minute are a burst of one.
const (
	unlimited      = `{"cookie":1000000,"ip":1000000,"fingerprint":1000000}`
	fourPerCookie  = `{"cookie":4,"ip":1000000,"fingerprint":1000000}`
	fourPerDevice  = `{"cookie":1000000,"ip":1000000,"fingerprint":4}`
	fourPerAddress = `{"cookie":1000000,"ip":4,"fingerprint":1000000}`
)

func allClasses(limit string) string {
	return limitFlags(`{"read":` + limit + `,"handoff":` + limit + `,"telemetry":` + limit + `}`)
}

// requireLimitedBy fails unless an answer is the refusal of a limit in every form.
func requireLimitedBy(t *testing.T, a *functest.Result, policy string) {
	t.Helper()
	wait, err := strconv.Atoi(a.Header.Get("Retry-After"))
	if a.StatusCode != 429 || !strings.HasSuffix(a.Code, ".RATE_LIMITED") || !a.Retriable || err != nil || wait < 1 || wait > 15 {
		t.Fatalf("%d %s, Retry-After %v", a.StatusCode, a.Text, a.Header["Retry-After"])
	}
	if !strings.Contains(a.Text, fmt.Sprintf(`"retryAfter":%d,`, wait)) {
		t.Errorf("%s after %d s", a.Text, wait)
	}
	for name, want := range map[string]string{
		"RateLimit-Limit": "4", "RateLimit-Remaining": "0", "RateLimit-Reset": fmt.Sprint(wait),
		"RateLimit": fmt.Sprintf(`"%s";r=0;t=%d`, policy, wait), "RateLimit-Policy": fmt.Sprintf(`"%s";q=4;w=60`, policy),
	} {
		if got := a.Header.Get(name); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}

func TestRateLimit_EachClassHasItsOwnBucket(t *testing.T) {
	for _, class := range []string{"read", "handoff", "telemetry"} {
		h := newHarness(t, allClasses(fourPerCookie))
		cookie := h.MustDo(204, "GET", "/"+class, "", "").SessionCookie()
		a := h.MustDo(204, "GET", "/"+class, cookie, "")
		if got := a.Header.Get("RateLimit-Policy"); got != `"`+class+`-cookie";q=4;w=60` || a.Header.Get("RateLimit-Remaining") != "0" {
			t.Errorf("%s: %v", class, a.Header)
		}
		requireLimitedBy(t, h.Do("GET", "/"+class, cookie, ""), class+"-cookie")
		for _, other := range []string{"read", "handoff", "telemetry"} {
			if other != class {
				h.MustDo(204, "GET", "/"+other, cookie, "")
			}
		}
		h.MustDo(204, "GET", "/"+class, "", "") // somebody else
		if !strings.Contains(h.Log.String(), `"limited":"`+class+`-cookie"`) {
			t.Error("the log does not say so")
		}
	}
}

func TestRateLimit_RejectedRequestDoesNoWork(t *testing.T) {
	h := newHarness(t, allClasses(fourPerAddress))
	h.MustDo(204, "GET", "/read", "", "")
	h.RoundTrips.TakeCount()
	rows := h.Count("outbox")
	requireLimitedBy(t, h.Do("GET", "/read", "", ""), "read-address")
	if n := h.RoundTrips.TakeCount(); n > 3 { // in, and what is given back; a third because the server had to be told the script
		t.Errorf("%d round trips", n)
	}
	requireLimitedBy(t, h.Do("GET", "/read", "", ""), "read-address")
	if n := h.RoundTrips.TakeCount(); n != 2 {
		t.Errorf("%d round trips", n)
	}
	if h.admitted != 1 || h.Count("outbox") != rows {
		t.Errorf("%d came in, %d events", h.admitted, h.Count("outbox")-rows)
	}
}

func TestControllerBegin_UsesOneRoundTrip(t *testing.T) {
	for name, flags := range map[string]string{
		"on": allClasses(unlimited), "off": `{"limitsEnabled":false,"botMode":"off"}`,
		"on, and bots kept out": strings.Replace(allClasses(unlimited), `"off"`, `"enforce"`, 1),
	} {
		h := newHarness(t, flags)
		cookie := h.MustDo(204, "GET", "/read", "", "").SessionCookie()
		h.MustDo(204, "GET", "/read", cookie, "")
		h.Do("GET", "/shared", "", "")
		h.Advance(10 * time.Second)
		for _, path := range []string{"/read", "/handoff", "/telemetry", "/shared"} {
			h.RoundTrips.TakeCount()
			a := h.Do("GET", path, cookie, "")
			if n := h.RoundTrips.TakeCount(); a.StatusCode >= 300 || n != 1 {
				t.Errorf("limits %s, %s: %d, %d round trips", name, path, a.StatusCode, n)
			}
			if said := a.Header.Get("RateLimit") != ""; said != (name != "off" && path != "/shared") {
				t.Errorf("limits %s, %s: %v", name, path, a.Header)
			}
		}
	}
}

func TestRateLimit_ErrorResponsesCountAndCarryHeaders(t *testing.T) {
	h := newHarness(t, allClasses(fourPerCookie))
	cookie := h.MustDo(204, "GET", "/read", "", "").SessionCookie()
	if a := h.MustDo(404, "GET", "/absent", cookie, ""); a.Header.Get("RateLimit-Remaining") != "0" {
		t.Errorf("%v", a.Header)
	}
	requireLimitedBy(t, h.Do("GET", "/unread", cookie, ""), "read-cookie")

	h = newHarness(t, allClasses(fourPerCookie))
	cookie = h.MustDo(204, "GET", "/read", "", "").SessionCookie()
	if a := h.MustDo(400, "GET", "/unread", cookie, ""); a.Header.Get("RateLimit-Remaining") != "0" {
		t.Errorf("%v", a.Header)
	}
	requireLimitedBy(t, h.Do("GET", "/unread", cookie, ""), "read-cookie")
	requireLimitedBy(t, h.Do("GET", "/read", cookie, ""), "read-cookie")
	if a := h.MustDo(422, "GET", "/read?x=1", "", ""); a.Header.Get("RateLimit") == "" {
		t.Errorf("%v", a.Header)
	}
}

func TestRateLimit_SharedRouteIgnoresCookie(t *testing.T) {
	h := newHarness(t, allClasses(fourPerCookie))
	cookie := h.MustDo(204, "GET", "/handoff", "", "").SessionCookie()
	for range 5 {
		a := h.MustDo(200, "GET", "/shared", cookie, "")
		if !strings.HasPrefix(a.Header.Get("Cache-Control"), "public") || a.Header.Get("Set-Cookie") != "" || a.Header.Get("RateLimit") != "" {
			t.Errorf("%v", a.Header)
		}
		again := h.MustDo(304, "GET", "/shared", cookie, "", "If-None-Match", a.Header.Get("ETag"))
		if again.Header.Get("RateLimit") != "" || again.Header.Get("RateLimit-Limit") != "" {
			t.Errorf("%v", again.Header)
		}
	}
	for policy, flags := range map[string]string{"read-address": allClasses(fourPerAddress), "read-fingerprint": allClasses(fourPerDevice)} {
		h := newHarness(t, flags)
		h.MustDo(200, "GET", "/shared", "", "")
		requireLimitedBy(t, h.Do("GET", "/shared", "", ""), policy)
		requireLimitedBy(t, h.Do("GET", "/read", "", ""), policy) // of one class
		h.MustDo(204, "GET", "/telemetry", "", "")
	}
}

// getFrom sends a request from an address, as a browser of an agent.
func (h *harness) getFrom(addr, agent, path string) *functest.Result {
	h.T.Helper()
	r := httptest.NewRequest("GET", path, nil)
	r.RemoteAddr = addr
	r.Header.Set("User-Agent", agent)
	return h.Send(r)
}

func TestRateLimit_GroupsByAddressAndByDeviceAtAddress(t *testing.T) {
	h := newHarness(t, allClasses(fourPerAddress))
	for _, c := range []struct {
		addr string
		want int
	}{
		{"192.0.2.1:1", 204}, {"192.0.2.1:2", 429}, {"192.0.2.2:1", 204}, {"[::ffff:192.0.2.2]:1", 429},
		{"[2001:db8::1]:1", 204}, {"[2001:db8::ffff:1]:1", 429}, {"[2001:db8:0:1::1]:1", 204},
	} {
		if a := h.getFrom(c.addr, functest.Firefox, "/read"); a.StatusCode != c.want {
			t.Errorf("%s: %d", c.addr, a.StatusCode)
		}
	}
	h = newHarness(t, allClasses(fourPerDevice))
	for _, c := range []struct {
		addr, agent string
		want        int
	}{
		{"192.0.2.1:1", functest.Firefox, 204}, {"192.0.2.1:1", functest.Firefox, 429}, {"192.0.2.1:1", functest.IPhone, 204},
		{"192.0.2.2:1", functest.IPhone, 204}, // the phone of half a country
	} {
		if a := h.getFrom(c.addr, c.agent, "/read"); a.StatusCode != c.want {
			t.Errorf("%s from %s: %d", c.agent, c.addr, a.StatusCode)
		}
	}
}

func TestRateLimit_WithoutRedisLimitsPerInstance(t *testing.T) {
	h := newHarness(t, allClasses(`{"cookie":40,"ip":1000000,"fingerprint":1000000}`))
	cookie := h.MustDo(204, "GET", "/read", "", "").SessionCookie()
	h.Redis.Stop()
	for n := range 10 { // the clock stands still
		if a := h.MustDo(204, "GET", "/read", cookie, ""); a.Header.Get("RateLimit-Remaining") != fmt.Sprint(9-n) {
			t.Errorf("%d: %v", n, a.Header)
		}
	}
	if a := h.Do("GET", "/read", cookie, ""); a.StatusCode != 429 || a.Header.Get("Retry-After") != "2" {
		t.Errorf("%d %v", a.StatusCode, a.Header)
	}
	h.Advance(1500 * time.Millisecond)
	h.MustDo(204, "GET", "/read", cookie, "")
	for n := range 100 {
		if a := h.getFrom(fmt.Sprintf("192.0.2.%d:1", n), functest.Firefox, "/shared"); a.StatusCode != 200 {
			t.Fatalf("%d %s", a.StatusCode, a.Text)
		}
	}
}

// commandRecorder keeps all that is sent to Redis.
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
	h := newHarness(t, allClasses(fourPerAddress))
	c := &commandRecorder{}
	h.Deps.Redis.AddHook(c)
	var addresses, agents []string
	refused := 0
	for n := range 500 {
		v4, v6 := fmt.Sprintf("203.0.%d.%d", 100+n/250, 1+n%250), fmt.Sprintf("2001:db8:%x:%x::", 0xa000+n, 0xb000+n)
		agent := fmt.Sprintf("Canary%d/1.0 (singing %d)", n, n)
		addresses, agents = append(addresses, v4, strings.TrimSuffix(v6, "::")), append(agents, agent, "singing "+strconv.Itoa(n))
		for _, addr := range []string{v4 + ":1", "[" + v6 + "1]:1"} {
			for _, path := range []string{"/read", "/shared"} { // the second is refused
				if h.getFrom(addr, agent, path).StatusCode == 429 {
					refused++
				}
			}
		}
	}
	sent, log := c.sent.String(), h.Log.String()
	var rows string
	if err := h.DB.QueryRow(t.Context(), "SELECT string_agg(o::text, ' ') FROM bff_consumer.outbox o").Scan(&rows); err != nil {
		t.Fatal(err)
	}
	if refused < 900 || strings.Count(sent, ":rl:{read:address:") < 2000 || strings.Count(log, "RATE_LIMITED") < 900 || strings.Count(rows, "session.started") < 900 {
		t.Fatalf("%d refused; the canaries were not where they could be found", refused)
	}
	for _, canary := range append(addresses, agents...) {
		if strings.Contains(sent, canary) {
			t.Errorf("%s in Redis", canary)
		}
		if strings.Contains(log, canary) {
			t.Errorf("%s in the log", canary)
		}
		if strings.Contains(rows, canary) {
			t.Errorf("%s in Postgres", canary)
		}
	}
}

// Whoever asks and does not wait for the answer has asked: else hanging up goes around the limits and is no pace.
func TestRateLimit_CountsDisconnectedClients(t *testing.T) {
	for _, path := range []string{"/read", "/shared", "/unread"} {
		h := newHarness(t, strings.Replace(allClasses(fourPerAddress), `"off"`, `"observe"`, 1))
		ctx, hangUp := context.WithCancel(t.Context())
		hangUp()
		h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(ctx, "GET", path, nil))
		if path != "/shared" && len(h.RDB.Keys(t.Context(), "*:bot:cadence:*").Val()) == 0 {
			t.Errorf("%s: it is not in the pace of its client", path)
		}
		if a := h.Send(httptest.NewRequestWithContext(t.Context(), "GET", path, nil)); a.StatusCode != 429 {
			t.Errorf("%s: %d", path, a.StatusCode)
		}
	}
}
