package admission_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"melmastoon.ghasi.io/bff-consumer/shared/challenge"
	"melmastoon.ghasi.io/bff-consumer/shared/challenge/work"
	"melmastoon.ghasi.io/bff-consumer/shared/functest"
)

const (
	enforce = `{"limitsEnabled":false,"botMode":"enforce","challenge":{"difficulty":6}}`
	observe = `{"limitsEnabled":false,"botMode":"observe"}`
	curl    = "curl/8.5.0"
)

// browser is the headers of a guest's, beside its agent.
var browser = []string{"Accept", "*/*", "Accept-Language", "fa-AF"}

// as asks for a route as a program of that agent, with a cookie or without.
func (h *house) as(agent, path, cookie string, headers ...string) *functest.Answer {
	h.T.Helper()
	headers = append(append([]string{"User-Agent", agent}, browser...), headers...)
	return h.Ask("GET", path, cookie, "", headers...)
}

// asked is what a refusal offers: the puzzle, and how many ways there are. It fails unless it is one that can be solved.
func asked(t testing.TB, a *functest.Answer) (puzzle challenge.Offer, ways int) {
	t.Helper()
	var body struct {
		Challenge struct {
			Header    string
			Providers []challenge.Offer
		}
	}
	a.Into(t, &body)
	if a.StatusCode != 429 || !strings.HasSuffix(a.Code, ".SUSPECTED_BOT") || body.Challenge.Header != challenge.Header || len(body.Challenge.Providers) == 0 {
		t.Fatalf("%d %s", a.StatusCode, a.Text)
	}
	ways = len(body.Challenge.Providers)
	return body.Challenge.Providers[ways-1], ways
}

// solved is the token that answers a refusal.
func solved(t testing.TB, a *functest.Answer) string {
	t.Helper()
	puzzle, _ := asked(t, a)
	return work.Solve(puzzle.Challenge, puzzle.Difficulty)
}

// verdicts are the rows of bot_score_log, as text: whose, verdict, action, kinds of signals.
func (h *house) verdicts() []string {
	h.T.Helper()
	rows, _ := h.DB.Query(context.Background(), `
		SELECT concat_ws(' ', coalesce(guest_session_id, '-'), verdict, action_taken,
		       (SELECT string_agg(s ->> 'kind' || ' ' || (s ->> 'detail'), ', ') FROM jsonb_array_elements(signals) AS s))
		FROM bff_consumer.bot_score_log ORDER BY verdict DESC, id`)
	all, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		h.T.Fatal(err)
	}
	return all
}

const reports = "outbox WHERE topic = 'melmastoon.bff.consumer.bot_suspected.v1'"

func TestAToolIsChallengedOnEveryRouteAndDoneNothingFor(t *testing.T) {
	h := newHouse(t, enforce)
	h.as(functest.Firefox, "/read", "")
	h.as(functest.Firefox, "/shared", "")
	for _, path := range []string{"/read", "/handoff", "/telemetry", "/shared", "/unread", "/read?x=1"} {
		h.Advance(time.Minute)
		h.Exec("DELETE FROM bff_consumer.bot_score_log")
		h.Exec("DELETE FROM bff_consumer.outbox")
		events := h.Count("outbox")
		h.behind = 0
		h.Trips.Take()
		a := h.as(curl, path, "")
		if n := h.Trips.Take(); n != 1 {
			t.Errorf("%s: %d round trips", path, n)
		}
		if puzzle, ways := asked(t, a); ways != 1 || puzzle.Kind != challenge.Work || puzzle.Difficulty != 6 {
			t.Errorf("%s: %s", path, a.Text)
		}
		if h.behind != 0 || h.Count("outbox") != events+1 || h.Count(reports) != 1 {
			t.Errorf("%s: %d came in, %d events, %d reports", path, h.behind, h.Count("outbox")-events, h.Count(reports))
		}
		if got := h.verdicts(); len(got) != 1 || got[0] != "- suspect challenge ua-pattern tool-curl" {
			t.Errorf("%s: %q", path, got)
		}
		if !strings.Contains(h.Log.String(), `"bot":"suspect"`) {
			t.Error("the log does not say so")
		}
		h.as(curl, path, "")
		if n := len(h.verdicts()); n != 1 {
			t.Errorf("%s: %d rows of one minute", path, n)
		}
	}
}

func TestWhoIsARobotByAllSignsIsBlocked(t *testing.T) {
	h := newHouse(t, enforce)
	var last *functest.Answer
	for range 12 {
		last = h.Ask("GET", "/read", "", "", "User-Agent", curl) // without Accept-Language, at a tool's pace
	}
	if last.StatusCode != 429 || !strings.HasSuffix(last.Code, ".SUSPECTED_BOT") || strings.Contains(last.Text, `"challenge"`) {
		t.Errorf("%d %s", last.StatusCode, last.Text)
	}
	if got := h.verdicts(); !strings.HasPrefix(got[len(got)-1], "- bot hard-block ") {
		t.Errorf("%q", got)
	}
}

func TestAModeSaysWhatFollows(t *testing.T) {
	h := newHouse(t, `{"limitsEnabled":false,"botMode":"off"}`)
	for range 20 {
		h.as(curl, "/read", "")
	}
	if n := h.RDB.Keys(t.Context(), "*bot*").Val(); h.behind != 20 || len(h.verdicts()) != 0 || len(n) != 0 {
		t.Errorf("off: %d came in, %q, %q", h.behind, h.verdicts(), n)
	}
	h = newHouse(t, observe)
	for range 20 {
		h.as(curl, "/read", "")
	}
	if got := h.verdicts(); h.behind != 20 || len(got) != 2 || got[0] != "- suspect none ua-pattern tool-curl" || !strings.HasPrefix(got[1], "- bot none ") {
		t.Errorf("observe: %d came in, %q", h.behind, got)
	}
	if a := h.as(curl, "/shared", ""); a.StatusCode != 200 || h.Count(reports) != 2 {
		t.Errorf("observe: %d, %d reports", a.StatusCode, h.Count(reports))
	}
}

func TestTwelveInTwoSecondsOfOneBrowserAreNoPersons(t *testing.T) {
	h := newHouse(t, enforce)
	cookie := ""
	for n := range 12 {
		a := h.as(functest.Firefox, "/read", cookie)
		if want := n == 11; (a.StatusCode == 429) != want {
			t.Fatalf("request %d: %d %s", n+1, a.StatusCode, a.Text)
		}
		if n == 0 {
			cookie = a.Cookie()
		}
		h.Advance(170 * time.Millisecond)
	}
	if got := h.verdicts(); len(got) != 1 || got[0] != cookie+" suspect challenge cadence 12 reqs/2s" {
		t.Errorf("%q", got)
	}
	h.Advance(3 * time.Second)
	h.as(functest.Firefox, "/read", cookie)
	for range 40 { // beacons and what is shared are looked at only
		h.Advance(50 * time.Millisecond)
		if a := h.as(functest.Firefox, "/telemetry", cookie); a.StatusCode != 204 {
			t.Fatalf("%d", a.StatusCode)
		}
		if a := h.as(functest.Firefox, "/shared", cookie); a.StatusCode != 200 {
			t.Fatalf("%d", a.StatusCode)
		}
	}
}

// A guest's calls go on for an hour, at the pace of a person, page by page.
func TestAnHourAtHumanPaceIsAPersons(t *testing.T) {
	h := newHouse(t, enforce)
	cookie, calls := "", 0
	for began := h.Now(); h.Now().Sub(began) < time.Hour; h.Advance(time.Duration(700+1300*(calls%7)) * time.Millisecond) {
		page := [][]string{{"/read", "/read", "/read", "/read", "/shared", "/telemetry"}, {"/read", "/read", "/shared"}, {"/shared", "/shared", "/read"}, {"/handoff"}}[calls%4]
		for _, path := range page {
			a := h.as(functest.IPhone, path, cookie)
			if a.StatusCode >= 300 {
				t.Fatalf("call %d after %v: %d %s", calls, h.Now().Sub(began), a.StatusCode, a.Text)
			}
			if cookie == "" {
				cookie = a.Cookie()
			}
			calls++
		}
	}
	if got := h.verdicts(); calls < 1000 || len(got) != 0 {
		t.Errorf("%d calls, %q", calls, got)
	}
}

func TestASolutionIsRememberedForAnHour(t *testing.T) {
	h := newHouse(t, enforce)
	began := h.Now()
	token := solved(t, h.as(curl, "/read", ""))
	a := h.as(curl, "/read", "", challenge.Header, token)
	cookie := a.Cookie()
	if a.StatusCode != 204 || cookie == "" {
		t.Fatalf("%d %s", a.StatusCode, a.Text)
	}
	h.Trips.Take()
	for _, path := range []string{"/read", "/handoff", "/telemetry"} {
		if a := h.as(curl, path, cookie); a.StatusCode != 204 || h.Trips.Take() != 1 {
			t.Errorf("%s: %d %s", path, a.StatusCode, a.Text)
		}
	}
	asked(t, h.as(curl, "/read", ""))                                // somebody else
	asked(t, h.as("wget/1.2", "/read", "", challenge.Header, token)) // not of this client
	asked(t, h.as(curl, "/shared", cookie))                          // which reads no cookie
	plain := h.as(functest.Firefox, "/shared", "")
	if a := h.as(curl, "/shared", "", challenge.Header, token); a.StatusCode != 200 || a.Text != plain.Text || fmt.Sprint(names(a.Header)) != fmt.Sprint(names(plain.Header)) {
		t.Errorf("%d %v, %v", a.StatusCode, a.Header, plain.Header)
	}
	ttl := h.RDB.PTTL(t.Context(), h.Parts.Keys.SessionPart(cookie, "challenge")).Val()
	if ttl > time.Hour || ttl < 58*time.Minute {
		t.Errorf("remembered for %v", ttl)
	}
	h.Set(began.Add(61 * time.Minute))
	asked(t, h.as(curl, "/shared", "", challenge.Header, token))
	asked(t, h.as(curl, "/read", "", challenge.Header, token))
	h.RDB.Del(t.Context(), h.Parts.Keys.SessionPart(cookie, "challenge")) // as its time does
	asked(t, h.as(curl, "/read", cookie))
}

func names(h http.Header) map[string]bool {
	found := map[string]bool{}
	for name := range h {
		found[name] = true
	}
	return found
}

// google is a stand-in for reCAPTCHA: it thinks of a token what its name says.
type google struct {
	*httptest.Server
	calls atomic.Int64
}

func newGoogle(t testing.TB) *google {
	g := &google{}
	g.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		g.calls.Add(1)
		var q struct {
			Event struct{ Token, ExpectedAction string }
		}
		if err := json.NewDecoder(r.Body).Decode(&q); err != nil {
			t.Error(err)
		}
		score := map[bool]string{true: "0.9", false: "0.1"}[strings.HasPrefix(q.Event.Token, "a-person")]
		fmt.Fprintf(w, `{"tokenProperties":{"valid":true,"createTime":%q,"hostname":"guests.example","action":%q},"riskAnalysis":{"score":%s}}`,
			time.Now().UTC().Format(time.RFC3339), q.Event.ExpectedAction, score)
	}))
	t.Cleanup(g.Close)
	return g
}

type token string

func (s token) Token(context.Context) (string, error) { return string(s), nil }

func TestRecaptchaIsAskedOnceAndOnlyAboutSuspects(t *testing.T) {
	g := newGoogle(t)
	h := &house{House: functest.New(t)}
	e := functest.Environment(t, h.Database, h.Redis.Addr, functest.Nowhere)
	e.Recaptcha = challenge.Config{Project: "p", SiteKey: "site", Hosts: []string{"guests.example"}, URL: g.URL, Tokens: token("ours")}
	if err := os.WriteFile(e.FlagsFile, []byte(enforce), 0o600); err != nil {
		t.Fatal(err)
	}
	h.API, h.Base = "", ""
	h.open(e)
	person, robot := "a-person-0123456789abc", "a-robot-0123456789abcd"
	h.as(functest.Firefox, "/read", "", challenge.Header, person)
	if _, ways := asked(t, h.as(curl, "/read", "")); ways != 2 || g.calls.Load() != 0 {
		t.Errorf("%d ways, asked %d times", ways, g.calls.Load())
	}
	a := h.as(curl, "/read", "", challenge.Header, person)
	if a.StatusCode != 204 || g.calls.Load() != 1 {
		t.Fatalf("%d %s, asked %d times", a.StatusCode, a.Text, g.calls.Load())
	}
	for range 3 {
		if a := h.as(curl, "/read", a.Cookie(), challenge.Header, person); a.StatusCode != 204 {
			t.Errorf("%d %s", a.StatusCode, a.Text)
		}
	}
	if g.calls.Load() != 1 {
		t.Errorf("asked %d times", g.calls.Load())
	}
	if a := h.as(curl, "/read", "", challenge.Header, robot); a.StatusCode != 429 || strings.Contains(a.Text, `"challenge"`) {
		t.Errorf("%d %s", a.StatusCode, a.Text)
	}
	got := h.verdicts()
	if last := got[len(got)-1]; last != "- bot hard-block ua-pattern tool-curl, recaptcha score-10" {
		t.Errorf("%q", got)
	}
}

func TestOfWhoRefusesNothingIsTold(t *testing.T) {
	h := newHouse(t, observe)
	for name, c := range map[string]struct {
		first, then []string
	}{
		"a browser":           {[]string{"Sec-GPC", "1"}, []string{"Sec-GPC", "1"}},
		"a session":           {[]string{"DNT", "1"}, nil},
		"a browser by itself": {nil, []string{"DNT", "1"}},
	} {
		for _, path := range []string{"/read", "/shared", "/unread"} {
			h.Advance(time.Minute)
			cookie := h.as(curl+" "+name, "/telemetry", "", c.first...).Cookie()
			h.Exec("DELETE FROM bff_consumer.bot_score_log")
			h.Exec("DELETE FROM bff_consumer.outbox")
			h.Advance(time.Minute)
			if name == "a browser by itself" {
				if path == "/read" {
					continue // its session was asked before and refused nothing
				}
				cookie = ""
			}
			h.as(curl+" "+name, path, cookie, c.then...)
			said := h.Count(reports)
			if name == "a session" && path == "/shared" { // nobody knows whose it is: it is told of as nobody's
				if got := h.verdicts(); said != 1 || len(got) != 1 || !strings.HasPrefix(got[0], "- suspect") {
					t.Errorf("%s, %s: %d, %q", name, path, said, got)
				}
				continue
			}
			if got := h.verdicts(); said != 0 || len(got) != 1 || !strings.HasPrefix(got[0], "- suspect") {
				t.Errorf("%s, %s: told %d times, %q", name, path, said, got)
			}
		}
	}
}

func TestSessionsThatBeginAreCounted(t *testing.T) {
	h := newHouse(t, observe)
	for range 3 {
		h.as(functest.Firefox, "/read", "")
	}
	found := h.RDB.Keys(t.Context(), "*").Val()
	n := int64(0)
	for _, key := range found {
		if strings.Contains(key, ":bot:sessions:") {
			n = h.RDB.ZCard(t.Context(), key).Val()
		}
	}
	if n != 3 {
		t.Errorf("%d of %q", n, found)
	}
}

func TestACookieOfAnotherBrowserIsASign(t *testing.T) {
	h := newHouse(t, enforce)
	cookie := h.as(functest.Firefox, "/read", "").Cookie()
	asked(t, h.as(curl, "/read", cookie))
	if got := h.verdicts(); len(got) != 1 || got[0] != "- suspect challenge ua-pattern tool-curl, header-anomaly cookie-of-another-browser" {
		t.Errorf("%q", got)
	}
}
