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

// failingResolver is a resolver that is away.
type failingResolver struct{}

func (failingResolver) LookupAddr(context.Context, string) ([]string, error) {
	return nil, errors.New("away")
}
func (failingResolver) LookupNetIP(context.Context, string, string) ([]netip.Addr, error) {
	return nil, errors.New("away")
}

// harness is a room with its Redis, a clock that tests move, and what admission would do with them.
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

// hash is one as session.Visit makes them, of what it is told.
func hash(of string) string { return fmt.Sprintf("sha256:%064x", of) }

func client(session string) bot.Client {
	return bot.Client{Fingerprint: hash("fingerprint"), Address: hash("address"), Session: session}
}

// evaluate is the way in of a request: one pipeline, one evaluation.
func (d *harness) evaluate(t testing.TB, c bot.Client, count bool) bot.Score {
	t.Helper()
	pipe := d.rdb.Pipeline()
	read := d.Enqueue(t.Context(), pipe, c, count)
	lua.Exec(t.Context(), pipe)
	return bot.Evaluate(d.Resolve(read, bot.Request{Header: browser()}))
}

// startSession is the way out of a request that began a session.
func (d *harness) startSession(t testing.TB, c bot.Client, session string) {
	t.Helper()
	pipe := d.rdb.Pipeline()
	d.EnqueueSessionStart(t.Context(), pipe, c, session)
	if err := lua.Exec(t.Context(), pipe); err != nil {
		t.Fatal(err)
	}
}

// What admission does with the room, from the pipeline to the batch.
func TestDetector_RequestFlow(t *testing.T) {
	d := newHarness(redistest.New(t))
	d.evaluate(t, client(""), false) // the server learns the script
	trips := redistest.Count(d.rdb)
	ctx, c := t.Context(), client("gms_1")

	// In: one pipeline, with the reads of session, limits and cache.
	pipe := d.rdb.Pipeline()
	session := pipe.HMGet(ctx, keys.Session(c.Session), "createdAt")
	read := d.Enqueue(ctx, pipe, c, true)
	if err := lua.Exec(ctx, pipe); err != nil || session.Err() != nil {
		t.Fatal(err, session.Err())
	}
	if n := trips.TakeCount(); n != 1 {
		t.Errorf("%d round trips", n)
	}
	// The verdict, without any.
	header := browser()
	header.Set("User-Agent", "curl/8.5.0")
	evidence := d.Resolve(read, bot.Request{Header: header, Address: netip.MustParseAddr("203.0.113.9")})
	score := bot.Evaluate(evidence)
	act := bot.ActionFor(flags.BotEnforce, score.Verdict, false)
	if score.Verdict != bot.Suspect || act != bot.Challenge {
		t.Errorf("%+v, %s", score, act)
	}
	// A token came with it: the same evidence, and what came of the challenge.
	evidence.Challenge = &bot.ChallengeResult{Weight: -0.4, Detail: "score-90"}
	if s := bot.Evaluate(evidence); bot.ActionFor(flags.BotEnforce, s.Verdict, true) != bot.None || s.Value != 0.1 {
		t.Errorf("%+v", s)
	}
	// The record, before the answer.
	batch := &pgx.Batch{}
	if d.ShouldRecord(c, score.Verdict, act) {
		if _, err := bot.Record(batch, bot.Entry{Client: c, AgentHash: hash("agent"), Score: score, Action: act, At: d.time}); err != nil {
			t.Fatal(err)
		}
	}
	if batch.Len() != 2 || trips.TakeCount() != 0 {
		t.Errorf("%d statements", batch.Len())
	}
	// Out, when the request began a session.
	d.startSession(t, client(""), "gms_2")
}

func TestDetector_TwelveRequestsInTwoSecondsAreNotHuman(t *testing.T) {
	for name, c := range map[string]struct {
		cookie func(i int) string
		begins func(i int) bool
	}{
		"without a cookie":             {func(int) string { return "" }, func(int) bool { return false }},
		"and a session for each":       {func(int) string { return "" }, func(int) bool { return true }},
		"with a cookie from the start": {func(int) string { return "gms_0" }, func(int) bool { return false }},
		"with the cookie of the first": {func(i int) string { return map[bool]string{true: "gms_0"}[i > 0] }, func(i int) bool { return i == 0 }},
	} {
		d := newHarness(redistest.New(t))
		for i := range 12 {
			score := d.evaluate(t, client(c.cookie(i)), true)
			if c.begins(i) {
				d.startSession(t, client(""), fmt.Sprint("gms_", i))
			}
			if want := i == 11; (score.Verdict != bot.Human) != want {
				t.Errorf("%s: request %d is %s by %v", name, i+1, score.Verdict, score.Signals)
			}
			d.time = d.time.Add(180 * time.Millisecond)
		}
		d.time = d.time.Add(time.Second)
		if s := d.evaluate(t, client("gms_0"), true); s.Verdict != bot.Human {
			t.Errorf("%s: after a pause it is %s by %v", name, s.Verdict, s.Signals)
		}
	}
}

func TestDetector_SharedAddressAndModelIsNotOneClient(t *testing.T) {
	d := newHarness(redistest.New(t))
	for i := range 60 {
		if s := d.evaluate(t, client(fmt.Sprint("gms_", i%10)), true); s.Verdict != bot.Human {
			t.Fatalf("request %d: %+v", i, s)
		}
		d.time = d.time.Add(30 * time.Millisecond) // 66 in 2 s, of ten guests
	}
	if s := d.evaluate(t, client("gms_3"), true); s.Value != 0.3 {
		t.Errorf("%+v", s)
	}
	if s := d.evaluate(t, bot.Client{Fingerprint: hash("another"), Address: hash("address")}, true); s.Value != 0 {
		t.Errorf("another model: %+v", s)
	}
}

func TestDetector_UncountedRequestsAddNothing(t *testing.T) {
	d := newHarness(redistest.New(t))
	for range 40 {
		if s := d.evaluate(t, client(""), false); s.Value != 0 {
			t.Fatalf("%+v", s)
		}
	}
	if n := d.rdb.DBSize(t.Context()).Val(); n != 0 {
		t.Errorf("%d keys", n)
	}
	for range 12 {
		d.evaluate(t, client(""), true)
	}
	if s := d.evaluate(t, client(""), false); s.Verdict != bot.Suspect {
		t.Errorf("who is fast elsewhere is %+v", s)
	}
}

func TestDetector_CollisionsAndPenaltyAddWeight(t *testing.T) {
	d := newHarness(redistest.New(t))
	for i := range 300 {
		d.startSession(t, client(""), fmt.Sprint("gms_", i))
		if i == 149 {
			if s := d.evaluate(t, client(""), false); s.Value != 0.13 {
				t.Errorf("150 sessions: %+v", s)
			}
		}
	}
	if s := d.evaluate(t, client(""), false); s.Value != 0.25 || s.Signals[0].Detail != "shared-with-256-sessions" {
		t.Errorf("300 sessions: %+v", s)
	}
	d.time = d.time.Add(25 * time.Hour)
	if s := d.evaluate(t, client(""), false); s.Value != 0 {
		t.Errorf("a day later: %+v", s)
	}
	d.rdb.Incr(t.Context(), keys.Penalty(hash("fingerprint")))
	if s := d.evaluate(t, client(""), false); s.Value != 0.05 || s.Signals[0].Detail != "handoff-replayed" {
		t.Errorf("%+v", s)
	}
}

func TestDetector_WithoutRedisUsesRemainingEvidence(t *testing.T) {
	server := redistest.NewServer(t)
	rdb := redisclient.Open(redisclient.Config{Addr: server.Addr})
	t.Cleanup(func() { rdb.Close() })
	d := newHarness(rdb)
	server.Stop()
	for range 20 {
		if s := d.evaluate(t, client(""), true); s.Value != 0 || len(s.Signals) != 0 {
			t.Fatalf("%+v", s)
		}
	}
	tool := bot.Request{Header: http.Header{"User-Agent": {"curl/8.5.0"}}}
	if s := bot.Evaluate(d.Resolve(nil, tool)); s.Value != 0.5 {
		t.Errorf("never asked: %+v", s)
	}
}

func TestDetector_VerifiesGooglebotByAddressRange(t *testing.T) {
	d := newHarness(redistest.New(t))
	for addr, want := range map[string]bot.Verdict{"66.249.66.1": bot.Human, "2001:4860:4801:10::1": bot.Human, "203.0.113.9": bot.Suspect} {
		for range 20 { // at any pace
			pipe := d.rdb.Pipeline()
			c := bot.Client{Fingerprint: hash("bot"), Address: hash(addr)}
			read := d.Enqueue(t.Context(), pipe, c, addr != "203.0.113.9")
			lua.Exec(t.Context(), pipe)
			s := bot.Evaluate(d.Resolve(read, bot.Request{Header: http.Header{"User-Agent": {googlebot}}, Address: netip.MustParseAddr(addr)}))
			if s.Verdict != want {
				t.Fatalf("%s: %+v", addr, s)
			}
		}
	}
}

// Memory stands for Redis where time is simulated, so it must be the same.
func TestInMemoryHistory_MatchesRedis(t *testing.T) {
	for seed := range uint64(5) {
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
			read := d.Enqueue(t.Context(), pipe, c, count)
			if err := lua.Exec(t.Context(), pipe); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(d.Resolve(read, bot.Request{Header: browser()}).History, m.Observe(c, d.time, count)); diff != "" {
				t.Fatalf("seed %d, request %d: %s", seed, i, diff)
			}
		}
	}
}

// What a client sends and where it is must not be found in Redis, whatever it is.
func TestDetector_StoresNoClientDataInRedis(t *testing.T) {
	d := newHarness(redistest.New(t))
	for i := range 1000 {
		canary := fmt.Sprintf("c4n4ry%04d", i)
		addr := netip.AddrFrom4([4]byte{203, 0, byte(i >> 8), byte(i)})
		c := bot.Client{Fingerprint: hash(fmt.Sprint(i)), Address: hash(fmt.Sprint(i / 2)), Session: "gms_" + canary}
		pipe := d.rdb.Pipeline()
		read := d.Enqueue(t.Context(), pipe, c, true)
		d.EnqueueSessionStart(t.Context(), pipe, c, "gms_new"+canary)
		if err := lua.Exec(t.Context(), pipe); err != nil {
			t.Fatal(err)
		}
		header := http.Header{"User-Agent": {canary + "/1.0 (" + canary + "@example.org)"}, "X-Client-Screen": {canary}}
		score := bot.Evaluate(d.Resolve(read, bot.Request{Header: header, Address: addr}))
		if told := fmt.Sprint(score); strings.Contains(told, canary) || strings.Contains(told, addr.String()) {
			t.Fatal(told)
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
			t.Fatal(all)
		}
		if ttl := d.rdb.PTTL(t.Context(), key).Val(); ttl <= 0 || ttl > 24*time.Hour {
			t.Fatalf("%s lives %v", key, ttl)
		}
	}
}
