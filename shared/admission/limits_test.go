package admission_test

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

	"melmastoon.ghasi.io/bff-consumer/shared/functest"
)

// four a minute are a burst of one.
const (
	many        = `{"cookie":1000000,"ip":1000000,"fingerprint":1000000}`
	fourACookie = `{"cookie":4,"ip":1000000,"fingerprint":1000000}`
	fourADevice = `{"cookie":1000000,"ip":1000000,"fingerprint":4}`
	fourALine   = `{"cookie":1000000,"ip":4,"fingerprint":1000000}`
)

func all(limit string) string {
	return limited(`{"read":` + limit + `,"handoff":` + limit + `,"telemetry":` + limit + `}`)
}

// limitedBy fails unless an answer is the refusal of a limit in every form.
func limitedBy(t *testing.T, a *functest.Answer, policy string) {
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

func TestEachPersonalRouteIsLimitedByItsClass(t *testing.T) {
	for _, class := range []string{"read", "handoff", "telemetry"} {
		h := newHouse(t, all(fourACookie))
		cookie := h.Must(204, "GET", "/"+class, "", "").Cookie()
		a := h.Must(204, "GET", "/"+class, cookie, "")
		if got := a.Header.Get("RateLimit-Policy"); got != `"`+class+`-cookie";q=4;w=60` || a.Header.Get("RateLimit-Remaining") != "0" {
			t.Errorf("%s: %v", class, a.Header)
		}
		limitedBy(t, h.Ask("GET", "/"+class, cookie, ""), class+"-cookie")
		for _, other := range []string{"read", "handoff", "telemetry"} {
			if other != class {
				h.Must(204, "GET", "/"+other, cookie, "")
			}
		}
		h.Must(204, "GET", "/"+class, "", "") // somebody else
		if !strings.Contains(h.Log.String(), `"limited":"`+class+`-cookie"`) {
			t.Error("the log does not say so")
		}
	}
}

func TestARefusedRequestIsDoneNothingFor(t *testing.T) {
	h := newHouse(t, all(fourALine))
	h.Must(204, "GET", "/read", "", "")
	h.Trips.Take()
	rows := h.Count("outbox")
	limitedBy(t, h.Ask("GET", "/read", "", ""), "read-address")
	if n := h.Trips.Take(); n > 3 { // in, and what is given back; a third because the server had to be told the script
		t.Errorf("%d round trips", n)
	}
	limitedBy(t, h.Ask("GET", "/read", "", ""), "read-address")
	if n := h.Trips.Take(); n != 2 {
		t.Errorf("%d round trips", n)
	}
	if h.behind != 1 || h.Count("outbox") != rows {
		t.Errorf("%d came in, %d events", h.behind, h.Count("outbox")-rows)
	}
}

func TestOneRoundTripAdmitsWithLimitsAndBotsAndWithout(t *testing.T) {
	for name, flags := range map[string]string{
		"on": all(many), "off": `{"limitsEnabled":false,"botMode":"off"}`,
		"on, and bots kept out": strings.Replace(all(many), `"off"`, `"enforce"`, 1),
	} {
		h := newHouse(t, flags)
		cookie := h.Must(204, "GET", "/read", "", "").Cookie()
		h.Must(204, "GET", "/read", cookie, "")
		h.Ask("GET", "/shared", "", "")
		h.Advance(10 * time.Second)
		for _, path := range []string{"/read", "/handoff", "/telemetry", "/shared"} {
			h.Trips.Take()
			a := h.Ask("GET", path, cookie, "")
			if n := h.Trips.Take(); a.StatusCode >= 300 || n != 1 {
				t.Errorf("limits %s, %s: %d, %d round trips", name, path, a.StatusCode, n)
			}
			if said := a.Header.Get("RateLimit") != ""; said != (name != "off" && path != "/shared") {
				t.Errorf("limits %s, %s: %v", name, path, a.Header)
			}
		}
	}
}

func TestEveryAnswerOfAPersonalRouteCountsAndSaysSo(t *testing.T) {
	h := newHouse(t, all(fourACookie))
	cookie := h.Must(204, "GET", "/read", "", "").Cookie()
	if a := h.Must(404, "GET", "/absent", cookie, ""); a.Header.Get("RateLimit-Remaining") != "0" {
		t.Errorf("%v", a.Header)
	}
	limitedBy(t, h.Ask("GET", "/unread", cookie, ""), "read-cookie")

	h = newHouse(t, all(fourACookie))
	cookie = h.Must(204, "GET", "/read", "", "").Cookie()
	if a := h.Must(400, "GET", "/unread", cookie, ""); a.Header.Get("RateLimit-Remaining") != "0" {
		t.Errorf("%v", a.Header)
	}
	limitedBy(t, h.Ask("GET", "/unread", cookie, ""), "read-cookie")
	limitedBy(t, h.Ask("GET", "/read", cookie, ""), "read-cookie")
	if a := h.Must(422, "GET", "/read?x=1", "", ""); a.Header.Get("RateLimit") == "" {
		t.Errorf("%v", a.Header)
	}
}

func TestASharedRouteIsLimitedByAddressAndDeviceAndNeverByCookie(t *testing.T) {
	h := newHouse(t, all(fourACookie))
	cookie := h.Must(204, "GET", "/handoff", "", "").Cookie()
	for range 5 {
		a := h.Must(200, "GET", "/shared", cookie, "")
		if !strings.HasPrefix(a.Header.Get("Cache-Control"), "public") || a.Header.Get("Set-Cookie") != "" || a.Header.Get("RateLimit") != "" {
			t.Errorf("%v", a.Header)
		}
		again := h.Must(304, "GET", "/shared", cookie, "", "If-None-Match", a.Header.Get("ETag"))
		if again.Header.Get("RateLimit") != "" || again.Header.Get("RateLimit-Limit") != "" {
			t.Errorf("%v", again.Header)
		}
	}
	for policy, flags := range map[string]string{"read-address": all(fourALine), "read-fingerprint": all(fourADevice)} {
		h := newHouse(t, flags)
		h.Must(200, "GET", "/shared", "", "")
		limitedBy(t, h.Ask("GET", "/shared", "", ""), policy)
		limitedBy(t, h.Ask("GET", "/read", "", ""), policy) // of one class
		h.Must(204, "GET", "/telemetry", "", "")
	}
}

// from sends a request from an address, as a browser of an agent.
func (h *house) from(addr, agent, path string) *functest.Answer {
	h.T.Helper()
	r := httptest.NewRequest("GET", path, nil)
	r.RemoteAddr = addr
	r.Header.Set("User-Agent", agent)
	return h.Send(r)
}

func TestAddressesAreLinesAndDevicesAreOfALine(t *testing.T) {
	h := newHouse(t, all(fourALine))
	for _, c := range []struct {
		addr string
		want int
	}{
		{"192.0.2.1:1", 204}, {"192.0.2.1:2", 429}, {"192.0.2.2:1", 204}, {"[::ffff:192.0.2.2]:1", 429},
		{"[2001:db8::1]:1", 204}, {"[2001:db8::ffff:1]:1", 429}, {"[2001:db8:0:1::1]:1", 204},
	} {
		if a := h.from(c.addr, functest.Firefox, "/read"); a.StatusCode != c.want {
			t.Errorf("%s: %d", c.addr, a.StatusCode)
		}
	}
	h = newHouse(t, all(fourADevice))
	for _, c := range []struct {
		addr, agent string
		want        int
	}{
		{"192.0.2.1:1", functest.Firefox, 204}, {"192.0.2.1:1", functest.Firefox, 429}, {"192.0.2.1:1", functest.IPhone, 204},
		{"192.0.2.2:1", functest.IPhone, 204}, // the phone of half a country
	} {
		if a := h.from(c.addr, c.agent, "/read"); a.StatusCode != c.want {
			t.Errorf("%s from %s: %d", c.agent, c.addr, a.StatusCode)
		}
	}
}

func TestWithoutRedisEveryoneIsAdmittedAndTheInstanceLimits(t *testing.T) {
	h := newHouse(t, all(`{"cookie":40,"ip":1000000,"fingerprint":1000000}`))
	cookie := h.Must(204, "GET", "/read", "", "").Cookie()
	h.Redis.Stop()
	for n := range 10 { // the clock stands still
		if a := h.Must(204, "GET", "/read", cookie, ""); a.Header.Get("RateLimit-Remaining") != fmt.Sprint(9-n) {
			t.Errorf("%d: %v", n, a.Header)
		}
	}
	if a := h.Ask("GET", "/read", cookie, ""); a.StatusCode != 429 || a.Header.Get("Retry-After") != "2" {
		t.Errorf("%d %v", a.StatusCode, a.Header)
	}
	h.Advance(1500 * time.Millisecond)
	h.Must(204, "GET", "/read", cookie, "")
	for n := range 100 {
		if a := h.from(fmt.Sprintf("192.0.2.%d:1", n), functest.Firefox, "/shared"); a.StatusCode != 200 {
			t.Fatalf("%d %s", a.StatusCode, a.Text)
		}
	}
}

// canaries keeps all that is sent to Redis.
type canaries struct {
	mu   sync.Mutex
	sent strings.Builder
}

func (c *canaries) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) { return next(ctx, network, addr) }
}

func (c *canaries) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		c.note(cmd)
		return next(ctx, cmd)
	}
}

func (c *canaries) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		c.note(cmds...)
		return next(ctx, cmds)
	}
}

func (c *canaries) note(cmds ...redis.Cmder) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, cmd := range cmds {
		for _, arg := range cmd.Args() {
			fmt.Fprintf(&c.sent, "%s\n", arg)
		}
	}
}

func TestNeitherAddressNorAgentOfAThousandIsKeptOrLogged(t *testing.T) {
	h := newHouse(t, all(fourALine))
	c := &canaries{}
	h.Parts.Redis.AddHook(c)
	var addresses, agents []string
	refused := 0
	for n := range 500 {
		v4, v6 := fmt.Sprintf("203.0.%d.%d", 100+n/250, 1+n%250), fmt.Sprintf("2001:db8:%x:%x::", 0xa000+n, 0xb000+n)
		agent := fmt.Sprintf("Canary%d/1.0 (singing %d)", n, n)
		addresses, agents = append(addresses, v4, strings.TrimSuffix(v6, "::")), append(agents, agent, "singing "+strconv.Itoa(n))
		for _, addr := range []string{v4 + ":1", "[" + v6 + "1]:1"} {
			for _, path := range []string{"/read", "/shared"} { // the second is refused
				if h.from(addr, agent, path).StatusCode == 429 {
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
func TestWhoHangsUpIsCountedAllTheSame(t *testing.T) {
	for _, path := range []string{"/read", "/shared", "/unread"} {
		h := newHouse(t, strings.Replace(all(fourALine), `"off"`, `"observe"`, 1))
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
