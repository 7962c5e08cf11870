package challenge

import (
	"context"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"melmastoon.ghasi.io/bff-consumer/shared/challenge/pow"
	"melmastoon.ghasi.io/bff-consumer/shared/keyring"
	"melmastoon.ghasi.io/bff-consumer/shared/lua"
	"melmastoon.ghasi.io/bff-consumer/shared/problem"
	"melmastoon.ghasi.io/bff-consumer/shared/redisclient"
	"melmastoon.ghasi.io/bff-consumer/shared/testkit/redistest"
)

const session = "gms_01KAH9ZWV9Y6J3D1W0S8B4K2ET"

var keys = redisclient.Keys{Env: "test"}

var (
	noon  = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	guest = Client{Fingerprint: "sha256:" + strings.Repeat("1a", 32), Address: "sha256:" + strings.Repeat("2b", 32)}
)

func ring(t testing.TB) keyring.Ring {
	t.Helper()
	r, err := keyring.Parse("k2:Y2hhbGxlbmdlIGtleSB0d28sIGZvciB0ZXN0cyBvbmx5")
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func at(now time.Time) func() time.Time { return func() time.Time { return now } }

// harness is a Service with a real Redis and a manual clock.
type harness struct {
	*Service
	rdb      redis.UniversalClient
	provider *countingProvider
	time     time.Time
}

func newHarness(t testing.TB, rdb redis.UniversalClient) *harness {
	t.Helper()
	d := &harness{rdb: rdb, provider: &countingProvider{score: 0.9}, time: noon}
	d.Service = New(keys, ring(t), d.provider, func() time.Time { return d.time })
	return d
}

// request makes the calls of one request of the session: Enqueue, Verify and EnqueueSave.
func (d *harness) request(t *testing.T, token string) Proof {
	t.Helper()
	p := d.verify(t, session, token)
	pipe := d.rdb.Pipeline()
	d.EnqueueSave(t.Context(), pipe, session, p)
	if err := lua.Exec(t.Context(), pipe); err != nil {
		t.Fatal(err)
	}
	return p
}

func (d *harness) verify(t *testing.T, id, token string) Proof {
	t.Helper()
	pipe := d.rdb.Pipeline()
	read := d.Enqueue(t.Context(), pipe, session)
	lua.Exec(t.Context(), pipe)
	return d.Verify(t.Context(), read, id, token, guest)
}

func (d *harness) puzzle() string {
	return pow.Solve(d.issuer.Issue(guest, 8).Text, 8)
}

func (d *harness) ttl() time.Duration {
	return d.rdb.PTTL(context.Background(), keys.SessionPart(session, "challenge")).Val()
}

func TestService_ProofLastsAnHourForItsSession(t *testing.T) {
	for kind, c := range map[string]struct {
		token func(*harness) string
		life  time.Duration
		score float64
	}{
		ProofOfWork: {(*harness).puzzle, 40 * time.Minute, 0},
		Recaptcha:   {func(*harness) string { return token }, time.Hour, 0.9},
	} {
		t.Run(kind, func(t *testing.T) {
			d := newHarness(t, redistest.New(t))
			send := c.token(d)
			d.time = noon.Add(20 * time.Minute) // the puzzle still expires an hour after it was issued
			if p := d.request(t, ""); p != (Proof{}) || d.ttl() > 0 {
				t.Fatalf("without a token: %+v, want the zero proof", p)
			}
			first := d.request(t, send)
			if first.Kind != kind || !first.Solved || first.Score != c.score || first.Reason != "" {
				t.Fatalf("first request: %+v, want a solved %s with the score %v", first, kind, c.score)
			}
			if left := d.ttl(); left > c.life || left < c.life-time.Minute {
				t.Errorf("TTL %v, want %v at most a minute less", left, c.life)
			}
			d.rdb.PExpire(t.Context(), keys.SessionPart(session, "challenge"), 30*time.Minute)
			for _, sent := range []string{"", send, "pow1.junk"} {
				if p := d.request(t, sent); p.Kind != kind || !p.Solved || p.Score != c.score {
					t.Errorf("later request with the token %q: %+v, want the stored proof", sent, p)
				}
			}
			if d.ttl() > 30*time.Minute {
				t.Error("a later request renewed the TTL")
			}
			if p := d.verify(t, "gms_another", ""); p != (Proof{}) {
				t.Errorf("another session: %+v, want the zero proof", p)
			}
			if p := d.Verify(t.Context(), nil, session, "", guest); p != (Proof{}) {
				t.Errorf("without a read: %+v, want the zero proof", p)
			}
			if n := d.provider.calls.Load(); kind == Recaptcha && n != 1 || kind == ProofOfWork && n != 0 {
				t.Errorf("%d calls of the provider, want 1 for reCAPTCHA only", n)
			}
		})
	}
}

func TestService_UnhelpfulProofIsNotSaved(t *testing.T) {
	d := newHarness(t, redistest.New(t))
	d.provider.score = 0.3
	for name, send := range map[string]string{
		"low score": token, "junk": "junk", "unsolved puzzle": d.issuer.Issue(guest, 24).Text + ".0", "no token": "",
	} {
		t.Run(name, func(t *testing.T) {
			p := d.request(t, send)
			if p.Solved || d.ttl() > 0 {
				t.Errorf("%+v, want no proof and no key", p)
			}
			if (p.Reason == "") != (name == "low score" || name == "no token") || send != "" && strings.Contains(p.Reason, send) {
				t.Errorf("reason %q, want a reason only for an invalid token and without its text", p.Reason)
			}
		})
	}
}

func TestService_RecaptchaOutweighsPuzzle(t *testing.T) {
	d := newHarness(t, redistest.New(t))
	d.request(t, d.puzzle())
	d.provider.score = 0.2
	if p := d.request(t, token); p.Kind != ProofOfWork || !p.Solved {
		t.Errorf("after a low score: %+v, want the stored solution", p)
	}
	d.provider.score = 0.8
	if p := d.request(t, token+"2"); p.Kind != Recaptcha || p.Score != 0.8 {
		t.Errorf("after a high score: %+v, want a reCAPTCHA proof with 0.8", p)
	}
	if p := d.request(t, d.puzzle()); p.Kind != Recaptcha {
		t.Errorf("after another puzzle: %+v, want the reCAPTCHA proof", p)
	}
}

func TestProof_WeightByKindAndScore(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		proof        Proof
		suspect, bot float64
	}{
		{Proof{}, 0, 0},
		{Proof{Reason: "recaptcha: EXPIRED"}, 0, 0},
		{Proof{Kind: ProofOfWork, Solved: true}, -0.5, 0},
		{Proof{Kind: Recaptcha, Score: 1}, -0.5, -0.5},
		{Proof{Kind: Recaptcha, Score: 0.9}, -0.5, -0.5},
		{Proof{Kind: Recaptcha, Score: 0.7}, -0.25, -0.25},
		{Proof{Kind: Recaptcha, Score: 0.5}, 0, 0},
		{Proof{Kind: Recaptcha, Score: 0.3}, 0.25, 0.25},
		{Proof{Kind: Recaptcha, Score: 0.1}, 0.5, 0.5},
		{Proof{Kind: Recaptcha, Score: 0}, 0.5, 0.5},
	} {
		if s, b := c.proof.Weight(false), c.proof.Weight(true); math.Abs(s-c.suspect) > 1e-9 || math.Abs(b-c.bot) > 1e-9 {
			t.Errorf("%+v: weights %v for a suspect and %v for a bot, want %v and %v", c.proof, s, b, c.suspect, c.bot)
		}
	}
}

func TestService_ClearedSessionSavesNothing(t *testing.T) {
	d := newHarness(t, redistest.New(t))
	p := d.verify(t, session, d.puzzle())
	d.rdb.Set(t.Context(), keys.SessionPart(session, "cleared"), 1, time.Minute) // as session.Purge does
	pipe := d.rdb.Pipeline()
	d.EnqueueSave(t.Context(), pipe, session, p)
	if err := lua.Exec(t.Context(), pipe); err != nil || d.ttl() > 0 {
		t.Errorf("error %v, TTL %v; want no key", err, d.ttl())
	}
}

func TestService_UnreadableProofIsIgnored(t *testing.T) {
	d := newHarness(t, redistest.New(t))
	key := keys.SessionPart(session, "challenge")
	for _, value := range []string{"", "recaptcha", "recaptcha x", "recaptcha NaN", "recaptcha 0.4", "recaptcha 7", "recaptcha -1", "proof of work", "{}"} {
		t.Run(value, func(t *testing.T) {
			d.rdb.Set(t.Context(), key, value, time.Minute)
			if p := d.verify(t, session, ""); p != (Proof{}) {
				t.Errorf("%+v, want the zero proof", p)
			}
		})
	}
	d.rdb.Del(t.Context(), key)
	d.rdb.LPush(t.Context(), key, "proof-of-work")
	if p := d.verify(t, session, ""); p != (Proof{}) {
		t.Errorf("a list: %+v, want the zero proof", p)
	}
}

func TestService_WithoutRedisTokenStillCounts(t *testing.T) {
	t.Parallel()
	server := redistest.NewServer(t)
	rdb := redisclient.Open(redisclient.Config{Addr: server.Addr})
	t.Cleanup(func() { rdb.Close() })
	d := newHarness(t, rdb)
	if p := d.request(t, d.puzzle()); !p.Solved {
		t.Fatalf("with Redis: %+v, want solved", p)
	}
	server.Stop()
	if p := d.verify(t, session, ""); p != (Proof{}) {
		t.Errorf("without Redis and token: %+v, want the zero proof", p)
	}
	if p := d.verify(t, session, d.puzzle()); !p.Solved {
		t.Errorf("without Redis, with a solution: %+v, want solved", p)
	}
	if p := d.verify(t, session, token); p.Kind != Recaptcha || !p.Solved {
		t.Errorf("without Redis, with a reCAPTCHA token: %+v, want solved", p)
	}
}

func TestService_WithoutRecaptchaOffersOnlyPuzzles(t *testing.T) {
	t.Parallel()
	r := New(keys, ring(t), nil, at(noon))
	if p := r.Verify(t.Context(), nil, session, token, guest); p.Solved || p.Reason == "" {
		t.Errorf("reCAPTCHA token: %+v, want unsolved with a reason", p)
	}
	offered := offers(t, r.Problem(guest, 16))
	if len(offered) != 1 || offered[0].Kind != ProofOfWork {
		t.Errorf("offers %+v, want the puzzle only", offered)
	}
}

func TestService_RecaptchaOutageIsNeutral(t *testing.T) {
	d := newHarness(t, redistest.New(t))
	d.provider.fails.Store(true)
	p := d.request(t, token)
	if p.Solved || p.Weight(false) != 0 || p.Reason != "recaptcha: status 503" {
		t.Errorf("%+v, want a neutral proof with the reason status 503", p)
	}
}

func offers(t *testing.T, p *problem.Problem) []Offer {
	t.Helper()
	c, ok := p.Extensions["challenge"].(struct {
		Header    string  `json:"header"`
		Providers []Offer `json:"providers"`
	})
	if !ok || c.Header != "X-Recaptcha-Token" {
		t.Fatalf("extensions %+v, want a challenge with the header X-Recaptcha-Token", p.Extensions)
	}
	return c.Providers
}

func TestServiceProblem_OffersEveryChallenge(t *testing.T) {
	t.Parallel()
	r := New(keys, ring(t), &countingProvider{}, at(noon))
	p := r.Problem(guest, 13)
	offered := offers(t, p)
	if p.Kind != problem.SuspectedBot || len(offered) != 2 || offered[0].Kind != Recaptcha || offered[0].SiteKey != site || offered[1].Difficulty != 13 {
		t.Errorf("problem %+v, offers %+v; want reCAPTCHA and a puzzle of difficulty 13", p, offered)
	}
	if b := Blocked(); b.Kind != problem.SuspectedBot || len(b.Extensions) != 0 {
		t.Errorf("Blocked: %+v, want no extension", b)
	}
}

// No address, user agent or token of a client is stored, or part of a proof or puzzle.
func TestService_StoresNoClientData(t *testing.T) {
	d := newHarness(t, redistest.New(t))
	var canaries []string
	var output strings.Builder
	for i := range 1000 {
		mark := fmt.Sprintf("canary%04d", i)
		canaries = append(canaries, mark)
		c := Client{Fingerprint: "sha256:" + mark, Address: "sha256:203.0.113." + mark}
		id := fmt.Sprintf("gms_%d", i)
		sent := "03A" + mark + "_a_token_of_that_form"
		if i%2 == 0 {
			sent = pow.Solve(d.issuer.Issue(c, 4).Text, 4)
		}
		p := d.Verify(t.Context(), nil, id, sent, c)
		pipe := d.rdb.Pipeline()
		d.EnqueueSave(t.Context(), pipe, id, p)
		if err := lua.Exec(t.Context(), pipe); err != nil || !p.Solved {
			t.Fatalf("%+v, error %v; want solved", p, err)
		}
		fmt.Fprintf(&output, "%s %s %+v\n", p, p.Reason, d.issuer.Issue(c, 16))
	}
	all := d.rdb.Keys(t.Context(), "*").Val()
	for _, key := range all {
		output.WriteString(key + " " + d.rdb.Get(t.Context(), key).Val() + "\n")
	}
	if len(all) != 1000 {
		t.Fatalf("%d keys, want 1000", len(all))
	}
	for _, mark := range canaries {
		if strings.Contains(output.String(), mark) {
			t.Errorf("%s is stored or in an output", mark)
		}
	}
}
