package bot_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/redis/go-redis/v9"

	"melmastoon.ghasi.io/bff-consumer/shared/bot"
	"melmastoon.ghasi.io/bff-consumer/shared/bot/crawler"
	"melmastoon.ghasi.io/bff-consumer/shared/flags"
	"melmastoon.ghasi.io/bff-consumer/shared/lua"
	"melmastoon.ghasi.io/bff-consumer/shared/redisclient"
	"melmastoon.ghasi.io/bff-consumer/shared/testkit/redistest"
)

const (
	chrome    = "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/147.0.0.0 Safari/537.36"
	googlebot = "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)"
)

var (
	keys = redisclient.Keys{Env: "test"}
	noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
)

// failingResolver is a Resolver whose lookups fail.
type failingResolver struct{}

func (failingResolver) LookupAddr(context.Context, string) ([]string, error) {
	return nil, errors.New("no DNS")
}
func (failingResolver) LookupNetIP(context.Context, string, string) ([]netip.Addr, error) {
	return nil, errors.New("no DNS")
}

// harness is a Detector with a real Redis and a manual clock.
type harness struct {
	*bot.Detector
	rdb  redis.UniversalClient
	time time.Time
}

func newHarness(rdb redis.UniversalClient) *harness {
	d := &harness{rdb: rdb, time: noon}
	now := func() time.Time { return d.time }
	d.Detector = bot.New(keys, crawler.New(failingResolver{}, now), now)
	return d
}

func browser() http.Header {
	return http.Header{"User-Agent": {chrome}, "Accept": {"*/*"}, "Accept-Language": {"fa-AF"}}
}

// hash returns a hash in the form of session.Client.
func hash(of string) string { return fmt.Sprintf("sha256:%064x", of) }

func client(session string) bot.Client {
	return bot.Client{Fingerprint: hash("fingerprint"), Address: hash("address"), Session: session}
}

// evaluate reads the history of a request in one pipeline and evaluates the request.
func (d *harness) evaluate(t testing.TB, c bot.Client, count bool) bot.Score {
	t.Helper()
	pipe := d.rdb.Pipeline()
	pending := d.Enqueue(t.Context(), pipe, c, count)
	lua.Exec(t.Context(), pipe)
	return bot.Evaluate(d.Resolve(pending, bot.Request{Header: browser()}))
}

// startSession records a session start, as the last pipeline of a request does.
func (d *harness) startSession(t testing.TB, c bot.Client, session string) {
	t.Helper()
	pipe := d.rdb.Pipeline()
	d.EnqueueSessionStart(t.Context(), pipe, c, session)
	if err := lua.Exec(t.Context(), pipe); err != nil {
		t.Fatal(err)
	}
}

// TestDetector_RequestFlow makes all calls of a request, from the first pipeline to the batch.
func TestDetector_RequestFlow(t *testing.T) {
	d := newHarness(redistest.New(t))
	d.evaluate(t, client(""), false) // loads the script into the server
	trips := redistest.Count(d.rdb)
	ctx, c := t.Context(), client("gms_1")

	// The first pipeline, together with the read of the session.
	pipe := d.rdb.Pipeline()
	session := pipe.HMGet(ctx, keys.Session(c.Session), "createdAt")
	pending := d.Enqueue(ctx, pipe, c, true)
	if err := lua.Exec(ctx, pipe); err != nil || session.Err() != nil {
		t.Fatal(err, session.Err())
	}
	if n := trips.TakeCount(); n != 1 {
		t.Errorf("%d round trips, want 1", n)
	}
	// The verdict, without a round trip.
	header := browser()
	header.Set("User-Agent", "curl/8.5.0")
	evidence := d.Resolve(pending, bot.Request{Header: header, Address: netip.MustParseAddr("203.0.113.9")})
	score := bot.Evaluate(evidence)
	action := bot.ActionFor(flags.BotEnforce, score.Verdict, false)
	if score.Verdict != bot.Suspect || action != bot.Challenge {
		t.Errorf("%+v, action %s; want suspect and challenge", score, action)
	}
	// The same evidence with the result of a challenge.
	evidence.Challenge = &bot.ChallengeResult{Weight: -0.4, Detail: "score-90"}
	if s := bot.Evaluate(evidence); bot.ActionFor(flags.BotEnforce, s.Verdict, true) != bot.None || s.Value != 0.1 {
		t.Errorf("with a challenge result: %+v, want score 0.1 and no action", s)
	}
	// The record, before the response.
	batch := &pgx.Batch{}
	if d.ShouldRecord(c, score.Verdict, action) {
		if _, err := bot.Record(batch, bot.Entry{Client: c, AgentHash: hash("agent"), Score: score, Action: action, At: d.time}); err != nil {
			t.Fatal(err)
		}
	}
	if batch.Len() != 2 || trips.TakeCount() != 0 {
		t.Errorf("%d statements, want 2 without a round trip", batch.Len())
	}
	// The last pipeline, if the request started a session.
	d.startSession(t, client(""), "gms_2")
}

func TestDetector_TwelveRequestsInTwoSecondsAreNotHuman(t *testing.T) {
	for name, c := range map[string]struct {
		cookie func(i int) string
		begins func(i int) bool
	}{
		"no cookie":                        {func(int) string { return "" }, func(int) bool { return false }},
		"no cookie, a session per request": {func(int) string { return "" }, func(int) bool { return true }},
		"a cookie from the start":          {func(int) string { return "gms_0" }, func(int) bool { return false }},
		"the cookie of the first request":  {func(i int) string { return map[bool]string{true: "gms_0"}[i > 0] }, func(i int) bool { return i == 0 }},
	} {
		t.Run(name, func(t *testing.T) {
			d := newHarness(redistest.New(t))
			for i := range 12 {
				score := d.evaluate(t, client(c.cookie(i)), true)
				if c.begins(i) {
					d.startSession(t, client(""), fmt.Sprint("gms_", i))
				}
				if want := i == 11; (score.Verdict != bot.Human) != want {
					t.Errorf("request %d is %s by %v, want not human only for request 12", i+1, score.Verdict, score.Signals)
				}
				d.time = d.time.Add(180 * time.Millisecond)
			}
			d.time = d.time.Add(time.Second)
			if s := d.evaluate(t, client("gms_0"), true); s.Verdict != bot.Human {
				t.Errorf("after a pause: %s by %v, want human", s.Verdict, s.Signals)
			}
		})
	}
}

func TestDetector_SharedAddressAndModelIsNotOneClient(t *testing.T) {
	d := newHarness(redistest.New(t))
	for i := range 60 {
		if s := d.evaluate(t, client(fmt.Sprint("gms_", i%10)), true); s.Verdict != bot.Human {
			t.Fatalf("request %d: %+v, want human", i, s)
		}
		d.time = d.time.Add(30 * time.Millisecond) // 66 requests in 2 s from ten guests
	}
	if s := d.evaluate(t, client("gms_3"), true); s.Value != 0.3 {
		t.Errorf("%+v, want score 0.3", s)
	}
	if s := d.evaluate(t, bot.Client{Fingerprint: hash("another"), Address: hash("address")}, true); s.Value != 0 {
		t.Errorf("another fingerprint: %+v, want score 0", s)
	}
}

func TestDetector_UncountedRequestsAddNothing(t *testing.T) {
	d := newHarness(redistest.New(t))
	for range 40 {
		if s := d.evaluate(t, client(""), false); s.Value != 0 {
			t.Fatalf("%+v, want score 0", s)
		}
	}
	if n := d.rdb.DBSize(t.Context()).Val(); n != 0 {
		t.Errorf("%d keys, want 0", n)
	}
	for range 12 {
		d.evaluate(t, client(""), true)
	}
	if s := d.evaluate(t, client(""), false); s.Verdict != bot.Suspect {
		t.Errorf("uncounted request of a fast client: %+v, want suspect", s)
	}
}

func TestDetector_CollisionsAndPenaltyAddWeight(t *testing.T) {
	d := newHarness(redistest.New(t))
	for i := range 300 {
		d.startSession(t, client(""), fmt.Sprint("gms_", i))
		if i == 149 {
			if s := d.evaluate(t, client(""), false); s.Value != 0.13 {
				t.Errorf("150 sessions: %+v, want score 0.13", s)
			}
		}
	}
	if s := d.evaluate(t, client(""), false); s.Value != 0.25 || s.Signals[0].Detail != "shared-with-256-sessions" {
		t.Errorf("300 sessions: %+v, want score 0.25 of 256 sessions", s)
	}
	d.time = d.time.Add(25 * time.Hour)
	if s := d.evaluate(t, client(""), false); s.Value != 0 {
		t.Errorf("a day later: %+v, want score 0", s)
	}
	d.rdb.Incr(t.Context(), keys.Penalty(hash("fingerprint")))
	if s := d.evaluate(t, client(""), false); s.Value != 0.05 || s.Signals[0].Detail != "handoff-replayed" {
		t.Errorf("%+v, want score 0.05 by handoff-replayed", s)
	}
}

func TestDetector_WithoutRedisUsesRemainingEvidence(t *testing.T) {
	t.Parallel()
	server := redistest.NewServer(t)
	rdb := redisclient.Open(redisclient.Config{Addr: server.Addr})
	t.Cleanup(func() { rdb.Close() })
	d := newHarness(rdb)
	server.Stop()
	for range 20 {
		if s := d.evaluate(t, client(""), true); s.Value != 0 || len(s.Signals) != 0 {
			t.Fatalf("%+v, want score 0 without signals", s)
		}
	}
	tool := bot.Request{Header: http.Header{"User-Agent": {"curl/8.5.0"}}}
	if s := bot.Evaluate(d.Resolve(nil, tool)); s.Value != 0.5 {
		t.Errorf("history not read: %+v, want score 0.5", s)
	}
}

func TestDetector_VerifiesGooglebotByAddressRange(t *testing.T) {
	d := newHarness(redistest.New(t))
	for addr, want := range map[string]bot.Verdict{"66.249.66.1": bot.Human, "2001:4860:4801:10::1": bot.Human, "203.0.113.9": bot.Suspect} {
		t.Run(addr, func(t *testing.T) {
			for range 20 {
				pipe := d.rdb.Pipeline()
				c := bot.Client{Fingerprint: hash("bot"), Address: hash(addr)}
				pending := d.Enqueue(t.Context(), pipe, c, addr != "203.0.113.9")
				lua.Exec(t.Context(), pipe)
				s := bot.Evaluate(d.Resolve(pending, bot.Request{Header: http.Header{"User-Agent": {googlebot}}, Address: netip.MustParseAddr(addr)}))
				if s.Verdict != want {
					t.Fatalf("%+v, want %s", s, want)
				}
			}
		})
	}
}

// Simulations use InMemoryHistory in place of Redis, so both must give the same history.
func TestInMemoryHistory_MatchesRedis(t *testing.T) {
	for seed := range uint64(5) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			d, m := newHarness(redistest.New(t)), bot.NewInMemoryHistory()
			random := rand.New(rand.NewPCG(seed, 27))
			for i := range 700 {
				d.time = d.time.Add(time.Duration(random.Float64() * random.Float64() * random.Float64() * float64(4*time.Second))).Truncate(time.Millisecond)
				c := client(map[bool]string{true: fmt.Sprint("gms_", random.IntN(3))}[random.IntN(3) > 0])
				count := random.IntN(8) > 0
				if random.IntN(20) == 0 {
					id := fmt.Sprint("gms_new", i)
					d.startSession(t, c, id)
					m.SessionStarted(c, id, d.time)
					c.Session = id
				}
				pipe := d.rdb.Pipeline()
				pending := d.Enqueue(t.Context(), pipe, c, count)
				if err := lua.Exec(t.Context(), pipe); err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(d.Resolve(pending, bot.Request{Header: browser()}).History, m.Observe(c, d.time, count)); diff != "" {
					t.Fatalf("request %d: %s", i, diff)
				}
			}
		})
	}
}

// No user agent, session id or address of a client is stored in Redis or repeated in a score.
func TestDetector_StoresNoClientDataInRedis(t *testing.T) {
	d := newHarness(redistest.New(t))
	for i := range 1000 {
		canary := fmt.Sprintf("c4n4ry%04d", i)
		addr := netip.AddrFrom4([4]byte{203, 0, byte(i >> 8), byte(i)})
		c := bot.Client{Fingerprint: hash(fmt.Sprint(i)), Address: hash(fmt.Sprint(i / 2)), Session: "gms_" + canary}
		pipe := d.rdb.Pipeline()
		pending := d.Enqueue(t.Context(), pipe, c, true)
		d.EnqueueSessionStart(t.Context(), pipe, c, "gms_new"+canary)
		if err := lua.Exec(t.Context(), pipe); err != nil {
			t.Fatal(err)
		}
		header := http.Header{"User-Agent": {canary + "/1.0 (" + canary + "@example.org)"}, "X-Client-Screen": {canary}}
		score := bot.Evaluate(d.Resolve(pending, bot.Request{Header: header, Address: addr}))
		if text := fmt.Sprint(score); strings.Contains(text, canary) || strings.Contains(text, addr.String()) {
			t.Fatalf("score %s contains data of the client", text)
		}
	}
	for _, key := range d.rdb.Keys(t.Context(), "*").Val() {
		var values []string
		switch d.rdb.Type(t.Context(), key).Val() {
		case "list":
			values = d.rdb.LRange(t.Context(), key, 0, -1).Val()
		case "zset":
			values = d.rdb.ZRange(t.Context(), key, 0, -1).Val()
		default:
			values = []string{d.rdb.Get(t.Context(), key).Val()}
		}
		if all := key + fmt.Sprint(values); strings.Contains(all, "c4n4ry") || strings.Contains(all, "203.0.") {
			t.Fatalf("key and values %s contain data of a client", all)
		}
		if ttl := d.rdb.PTTL(t.Context(), key).Val(); ttl <= 0 || ttl > 24*time.Hour {
			t.Fatalf("%s: TTL %v, want at most 24h", key, ttl)
		}
	}
}
