package guest_test

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
	"melmastoon.ghasi.io/bff-consumer/shared/challenge/pow"
	"melmastoon.ghasi.io/bff-consumer/shared/testkit/functest"
)

const (
	enforceFlags = `{"limitsEnabled":false,"botMode":"enforce","challenge":{"difficulty":6}}`
	observeFlags = `{"limitsEnabled":false,"botMode":"observe"}`
	curlAgent    = "curl/8.5.0"
)

// browserHeaders is the headers of a guest's, beside its agent.
var browserHeaders = []string{"Accept", "*/*", "Accept-Language", "fa-AF"}

// getAs asks for a route as a program of that agent, with a cookie or without.
func (h *harness) getAs(agent, path, cookie string, headers ...string) *functest.Result {
	h.T.Helper()
	headers = append(append([]string{"User-Agent", agent}, browserHeaders...), headers...)
	return h.Do("GET", path, cookie, "", headers...)
}

// requireChallenge is what a refusal offers: the puzzle, and how many ways there are. It fails unless it is one that can be solved.
func requireChallenge(t testing.TB, a *functest.Result) (puzzle challenge.Offer, ways int) {
	t.Helper()
	var body struct {
		Challenge struct {
			Header    string
			Providers []challenge.Offer
		}
	}
	a.Decode(t, &body)
	if a.StatusCode != 429 || !strings.HasSuffix(a.Code, ".SUSPECTED_BOT") || body.Challenge.Header != challenge.Header || len(body.Challenge.Providers) == 0 {
		t.Fatalf("%d %s", a.StatusCode, a.Text)
	}
	ways = len(body.Challenge.Providers)
	return body.Challenge.Providers[ways-1], ways
}

// solveChallenge is the token that answers a refusal.
func solveChallenge(t testing.TB, a *functest.Result) string {
	t.Helper()
	puzzle, _ := requireChallenge(t, a)
	return pow.Solve(puzzle.Challenge, puzzle.Difficulty)
}

// verdictRows are the rows of bot_score_log, as text: whose, verdict, action, kinds of signals.
func (h *harness) verdictRows() []string {
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

const botReports = "outbox WHERE topic = 'melmastoon.bff.consumer.bot_suspected.v1'"

func TestCheck_ChallengesToolsOnEveryRouteInOneRoundTrip(t *testing.T) {
	h := newHarness(t, enforceFlags)
	h.getAs(functest.Firefox, "/read", "")
	h.getAs(functest.Firefox, "/shared", "")
	for _, path := range []string{"/read", "/handoff", "/telemetry", "/shared", "/unread", "/read?x=1"} {
		h.Advance(time.Minute)
		h.Exec("DELETE FROM bff_consumer.bot_score_log")
		h.Exec("DELETE FROM bff_consumer.outbox")
		events := h.Count("outbox")
		h.admitted = 0
		h.RoundTrips.TakeCount()
		a := h.getAs(curlAgent, path, "")
		if n := h.RoundTrips.TakeCount(); n != 1 {
			t.Errorf("%s: %d round trips", path, n)
		}
		if puzzle, ways := requireChallenge(t, a); ways != 1 || puzzle.Kind != challenge.ProofOfWork || puzzle.Difficulty != 6 {
			t.Errorf("%s: %s", path, a.Text)
		}
		if h.admitted != 0 || h.Count("outbox") != events+1 || h.Count(botReports) != 1 {
			t.Errorf("%s: %d came in, %d events, %d reports", path, h.admitted, h.Count("outbox")-events, h.Count(botReports))
		}
		if got := h.verdictRows(); len(got) != 1 || got[0] != "- suspect challenge ua-pattern tool-curl" {
			t.Errorf("%s: %q", path, got)
		}
		if !strings.Contains(h.Log.String(), `"bot":"suspect"`) {
			t.Error("the log does not say so")
		}
		h.getAs(curlAgent, path, "")
		if n := len(h.verdictRows()); n != 1 {
			t.Errorf("%s: %d rows of one minute", path, n)
		}
	}
}

func TestCheck_BlocksClientWithManyBotSignals(t *testing.T) {
	h := newHarness(t, enforceFlags)
	var last *functest.Result
	for range 12 {
		last = h.Do("GET", "/read", "", "", "User-Agent", curlAgent) // without Accept-Language, at a tool's pace
	}
	if last.StatusCode != 429 || !strings.HasSuffix(last.Code, ".SUSPECTED_BOT") || strings.Contains(last.Text, `"challenge"`) {
		t.Errorf("%d %s", last.StatusCode, last.Text)
	}
	if got := h.verdictRows(); !strings.HasPrefix(got[len(got)-1], "- bot hard-block ") {
		t.Errorf("%q", got)
	}
}

func TestCheck_BotModeOffAndObserveAdmitAll(t *testing.T) {
	h := newHarness(t, `{"limitsEnabled":false,"botMode":"off"}`)
	for range 20 {
		h.getAs(curlAgent, "/read", "")
	}
	if n := h.RDB.Keys(t.Context(), "*bot*").Val(); h.admitted != 20 || len(h.verdictRows()) != 0 || len(n) != 0 {
		t.Errorf("off: %d came in, %q, %q", h.admitted, h.verdictRows(), n)
	}
	h = newHarness(t, observeFlags)
	for range 20 {
		h.getAs(curlAgent, "/read", "")
	}
	if got := h.verdictRows(); h.admitted != 20 || len(got) != 2 || got[0] != "- suspect none ua-pattern tool-curl" || !strings.HasPrefix(got[1], "- bot none ") {
		t.Errorf("observe: %d came in, %q", h.admitted, got)
	}
	if a := h.getAs(curlAgent, "/shared", ""); a.StatusCode != 200 || h.Count(botReports) != 2 {
		t.Errorf("observe: %d, %d reports", a.StatusCode, h.Count(botReports))
	}
}

func TestCheck_TwelveRequestsInTwoSecondsAreSuspect(t *testing.T) {
	h := newHarness(t, enforceFlags)
	cookie := ""
	for n := range 12 {
		a := h.getAs(functest.Firefox, "/read", cookie)
		if want := n == 11; (a.StatusCode == 429) != want {
			t.Fatalf("request %d: %d %s", n+1, a.StatusCode, a.Text)
		}
		if n == 0 {
			cookie = a.SessionCookie()
		}
		h.Advance(170 * time.Millisecond)
	}
	if got := h.verdictRows(); len(got) != 1 || got[0] != cookie+" suspect challenge cadence 12 reqs/2s" {
		t.Errorf("%q", got)
	}
	h.Advance(3 * time.Second)
	h.getAs(functest.Firefox, "/read", cookie)
	for range 40 { // beacons and what is shared are looked at only
		h.Advance(50 * time.Millisecond)
		if a := h.getAs(functest.Firefox, "/telemetry", cookie); a.StatusCode != 204 {
			t.Fatalf("%d", a.StatusCode)
		}
		if a := h.getAs(functest.Firefox, "/shared", cookie); a.StatusCode != 200 {
			t.Fatalf("%d", a.StatusCode)
		}
	}
}

// A guest's calls go on for an hour, at the pace of a person, page by page.
func TestCheck_HumanPaceForAnHourIsNotSuspect(t *testing.T) {
	h := newHarness(t, enforceFlags)
	cookie, calls := "", 0
	for began := h.Now(); h.Now().Sub(began) < time.Hour; h.Advance(time.Duration(700+1300*(calls%7)) * time.Millisecond) {
		page := [][]string{{"/read", "/read", "/read", "/read", "/shared", "/telemetry"}, {"/read", "/read", "/shared"}, {"/shared", "/shared", "/read"}, {"/handoff"}}[calls%4]
		for _, path := range page {
			a := h.getAs(functest.IPhone, path, cookie)
			if a.StatusCode >= 300 {
				t.Fatalf("call %d after %v: %d %s", calls, h.Now().Sub(began), a.StatusCode, a.Text)
			}
			if cookie == "" {
				cookie = a.SessionCookie()
			}
			calls++
		}
	}
	if got := h.verdictRows(); calls < 1000 || len(got) != 0 {
		t.Errorf("%d calls, %q", calls, got)
	}
}

func TestCheck_SolvedChallengeIsValidForAnHour(t *testing.T) {
	h := newHarness(t, enforceFlags)
	began := h.Now()
	token := solveChallenge(t, h.getAs(curlAgent, "/read", ""))
	a := h.getAs(curlAgent, "/read", "", challenge.Header, token)
	cookie := a.SessionCookie()
	if a.StatusCode != 204 || cookie == "" {
		t.Fatalf("%d %s", a.StatusCode, a.Text)
	}
	h.RoundTrips.TakeCount()
	for _, path := range []string{"/read", "/handoff", "/telemetry"} {
		if a := h.getAs(curlAgent, path, cookie); a.StatusCode != 204 || h.RoundTrips.TakeCount() != 1 {
			t.Errorf("%s: %d %s", path, a.StatusCode, a.Text)
		}
	}
	requireChallenge(t, h.getAs(curlAgent, "/read", ""))                           // somebody else
	requireChallenge(t, h.getAs("wget/1.2", "/read", "", challenge.Header, token)) // not of this client
	requireChallenge(t, h.getAs(curlAgent, "/shared", cookie))                     // which reads no cookie
	plain := h.getAs(functest.Firefox, "/shared", "")
	if a := h.getAs(curlAgent, "/shared", "", challenge.Header, token); a.StatusCode != 200 || a.Text != plain.Text || fmt.Sprint(headerNames(a.Header)) != fmt.Sprint(headerNames(plain.Header)) {
		t.Errorf("%d %v, %v", a.StatusCode, a.Header, plain.Header)
	}
	ttl := h.RDB.PTTL(t.Context(), h.Deps.Keys.SessionPart(cookie, "challenge")).Val()
	if ttl > time.Hour || ttl < 58*time.Minute {
		t.Errorf("remembered for %v", ttl)
	}
	h.Set(began.Add(61 * time.Minute))
	requireChallenge(t, h.getAs(curlAgent, "/shared", "", challenge.Header, token))
	requireChallenge(t, h.getAs(curlAgent, "/read", "", challenge.Header, token))
	h.RDB.Del(t.Context(), h.Deps.Keys.SessionPart(cookie, "challenge")) // as its time does
	requireChallenge(t, h.getAs(curlAgent, "/read", cookie))
}

func headerNames(h http.Header) map[string]bool {
	found := map[string]bool{}
	for name := range h {
		found[name] = true
	}
	return found
}

// recaptchaServer is a stand-in for reCAPTCHA: it thinks of a token what its name says.
type recaptchaServer struct {
	*httptest.Server
	calls atomic.Int64
}

func newRecaptchaServer(t testing.TB) *recaptchaServer {
	g := &recaptchaServer{}
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

type staticToken string

func (s staticToken) Token(context.Context) (string, error) { return string(s), nil }

func TestCheck_RecaptchaCalledOnceForSuspectsOnly(t *testing.T) {
	g := newRecaptchaServer(t)
	h := &harness{Harness: functest.New(t)}
	e := functest.Environment(t, h.Database, h.Redis.Addr, functest.UnreachableURL)
	e.Recaptcha = challenge.Config{Project: "p", SiteKey: "site", Hosts: []string{"guests.example"}, URL: g.URL, Tokens: staticToken("ours")}
	if err := os.WriteFile(e.FlagsFile, []byte(enforceFlags), 0o600); err != nil {
		t.Fatal(err)
	}
	h.APIDocument, h.BasePath = "", ""
	h.mountRoutes(e)
	person, robot := "a-person-0123456789abc", "a-robot-0123456789abcd"
	h.getAs(functest.Firefox, "/read", "", challenge.Header, person)
	if _, ways := requireChallenge(t, h.getAs(curlAgent, "/read", "")); ways != 2 || g.calls.Load() != 0 {
		t.Errorf("%d ways, asked %d times", ways, g.calls.Load())
	}
	a := h.getAs(curlAgent, "/read", "", challenge.Header, person)
	if a.StatusCode != 204 || g.calls.Load() != 1 {
		t.Fatalf("%d %s, asked %d times", a.StatusCode, a.Text, g.calls.Load())
	}
	for range 3 {
		if a := h.getAs(curlAgent, "/read", a.SessionCookie(), challenge.Header, person); a.StatusCode != 204 {
			t.Errorf("%d %s", a.StatusCode, a.Text)
		}
	}
	if g.calls.Load() != 1 {
		t.Errorf("asked %d times", g.calls.Load())
	}
	if a := h.getAs(curlAgent, "/read", "", challenge.Header, robot); a.StatusCode != 429 || strings.Contains(a.Text, `"challenge"`) {
		t.Errorf("%d %s", a.StatusCode, a.Text)
	}
	got := h.verdictRows()
	if last := got[len(got)-1]; last != "- bot hard-block ua-pattern tool-curl, recaptcha score-10" {
		t.Errorf("%q", got)
	}
}

func TestCheck_NoBotEventAfterTelemetryOptOut(t *testing.T) {
	h := newHarness(t, observeFlags)
	for name, c := range map[string]struct {
		first, then []string
	}{
		"a browser":           {[]string{"Sec-GPC", "1"}, []string{"Sec-GPC", "1"}},
		"a session":           {[]string{"DNT", "1"}, nil},
		"a browser by itself": {nil, []string{"DNT", "1"}},
	} {
		for _, path := range []string{"/read", "/shared", "/unread"} {
			h.Advance(time.Minute)
			cookie := h.getAs(curlAgent+" "+name, "/telemetry", "", c.first...).SessionCookie()
			h.Exec("DELETE FROM bff_consumer.bot_score_log")
			h.Exec("DELETE FROM bff_consumer.outbox")
			h.Advance(time.Minute)
			if name == "a browser by itself" {
				if path == "/read" {
					continue // its session was asked before and refused nothing
				}
				cookie = ""
			}
			h.getAs(curlAgent+" "+name, path, cookie, c.then...)
			said := h.Count(botReports)
			if name == "a session" && path == "/shared" { // nobody knows whose it is: it is told of as nobody's
				if got := h.verdictRows(); said != 1 || len(got) != 1 || !strings.HasPrefix(got[0], "- suspect") {
					t.Errorf("%s, %s: %d, %q", name, path, said, got)
				}
				continue
			}
			if got := h.verdictRows(); said != 0 || len(got) != 1 || !strings.HasPrefix(got[0], "- suspect") {
				t.Errorf("%s, %s: told %d times, %q", name, path, said, got)
			}
		}
	}
}

func TestCheck_CountsNewSessionsPerClient(t *testing.T) {
	h := newHarness(t, observeFlags)
	for range 3 {
		h.getAs(functest.Firefox, "/read", "")
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

func TestCheck_CookieOfAnotherBrowserIsASignal(t *testing.T) {
	h := newHarness(t, enforceFlags)
	cookie := h.getAs(functest.Firefox, "/read", "").SessionCookie()
	requireChallenge(t, h.getAs(curlAgent, "/read", cookie))
	if got := h.verdictRows(); len(got) != 1 || got[0] != "- suspect challenge ua-pattern tool-curl, header-anomaly cookie-of-another-browser" {
		t.Errorf("%q", got)
	}
}
