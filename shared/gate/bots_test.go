package gate_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
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

// requireChallenge returns the puzzle of a challenge, and the number of providers. It fails the
// test for any other response.
func requireChallenge(t testing.TB, a *functest.Result) (puzzle challenge.Offer, providers int) {
	t.Helper()
	var body struct {
		Challenge struct {
			Header    string
			Providers []challenge.Offer
		}
	}
	a.Decode(t, &body)
	if a.StatusCode != 429 || !strings.HasSuffix(a.Code, ".SUSPECTED_BOT") || body.Challenge.Header != challenge.Header || len(body.Challenge.Providers) == 0 {
		t.Fatalf("got %d %s, want 429 with a challenge", a.StatusCode, a.Text)
	}
	providers = len(body.Challenge.Providers)
	return body.Challenge.Providers[providers-1], providers
}

// solveChallenge returns the token that solves the puzzle of a challenge.
func solveChallenge(t testing.TB, a *functest.Result) string {
	t.Helper()
	puzzle, _ := requireChallenge(t, a)
	return pow.Solve(puzzle.Challenge, puzzle.Difficulty)
}

// requireRejectedAsBot fails the test unless the response rejects a bot without a challenge.
func requireRejectedAsBot(t testing.TB, a *functest.Result) {
	t.Helper()
	if a.StatusCode != 429 || !strings.HasSuffix(a.Code, ".SUSPECTED_BOT") || strings.Contains(a.Text, `"challenge"`) {
		t.Errorf("got %d %s, want 429 SUSPECTED_BOT without a challenge", a.StatusCode, a.Text)
	}
}

// verdictRows returns the rows of bot_score_log as text: session or "-", verdict, action, signals.
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

func TestGateBots_ChallengesToolsOnEveryRouteInOneRoundTrip(t *testing.T) {
	t.Parallel()
	h := newHarness(t, enforceFlags)
	h.getAs(functest.Firefox, "/read", "") // loads the scripts
	h.getAs(functest.Firefox, "/shared", "")
	for _, path := range []string{"/read", "/handoff", "/telemetry", "/shared", "/malformed", "/read?x=1"} {
		t.Run(path, func(t *testing.T) {
			h.Advance(time.Minute)
			h.Exec("DELETE FROM bff_consumer.bot_score_log")
			h.Exec("DELETE FROM bff_consumer.outbox")
			h.admitted = 0
			h.RoundTrips.TakeCount()
			a := h.getAs(curlAgent, path, "")
			if got := h.RoundTrips.TakeCount(); got != 1 {
				t.Errorf("%d round trips, want 1", got)
			}
			if puzzle, providers := requireChallenge(t, a); providers != 1 || puzzle.Kind != challenge.ProofOfWork || puzzle.Difficulty != 6 {
				t.Errorf("got %d providers, puzzle %+v, want a single proof of work of difficulty 6", providers, puzzle)
			}
			if h.admitted != 0 {
				t.Errorf("the gate admitted %d requests, want 0", h.admitted)
			}
			if all, reports := h.Count("outbox"), h.Count(botReports); all != 1 || reports != 1 {
				t.Errorf("%d events, %d of them bot reports, want a single bot report", all, reports)
			}
			if diff := cmp.Diff([]string{"- suspect challenge ua-pattern tool-curl"}, h.verdictRows()); diff != "" {
				t.Errorf("verdicts (-want +got):\n%s", diff)
			}
			if got := h.Log.Last(t)["bot"]; got != "suspect" {
				t.Errorf("log field bot is %v, want suspect", got)
			}
			h.getAs(curlAgent, path, "")
			if got := len(h.verdictRows()); got != 1 {
				t.Errorf("%d verdicts on a client within a minute, want 1", got)
			}
		})
	}
}

func TestGateBots_BlocksClientWithManySignals(t *testing.T) {
	t.Parallel()
	h := newHarness(t, enforceFlags)
	var last *functest.Result
	for range 12 {
		// without Accept-Language, at a tool's pace
		last = h.Do("GET", "/read", "", "", "User-Agent", curlAgent)
	}
	requireRejectedAsBot(t, last)
	if got := h.verdictRows(); len(got) == 0 || !strings.HasPrefix(got[len(got)-1], "- bot hard-block ") {
		t.Errorf("verdicts %q, want the last to start with \"- bot hard-block\"", got)
	}
}

func TestGateBots_ModeOffRecordsNothing(t *testing.T) {
	t.Parallel()
	h := newHarness(t, `{"limitsEnabled":false,"botMode":"off"}`)
	for range 20 {
		h.getAs(curlAgent, "/read", "")
	}
	if h.admitted != 20 {
		t.Errorf("the gate admitted %d requests, want 20", h.admitted)
	}
	if rows, keys := h.verdictRows(), h.RDB.Keys(t.Context(), "*bot*").Val(); len(rows) != 0 || len(keys) != 0 {
		t.Errorf("verdicts %q, keys %q, want none", rows, keys)
	}
}

func TestGateBots_ModeObserveRecordsAndAdmits(t *testing.T) {
	t.Parallel()
	h := newHarness(t, observeFlags)
	for range 20 {
		h.getAs(curlAgent, "/read", "")
	}
	if h.admitted != 20 {
		t.Errorf("the gate admitted %d requests, want 20", h.admitted)
	}
	if got := h.verdictRows(); len(got) != 2 || got[0] != "- suspect none ua-pattern tool-curl" || !strings.HasPrefix(got[1], "- bot none ") {
		t.Errorf("verdicts %q, want a suspect and a bot, both with action none", got)
	}
	if a := h.getAs(curlAgent, "/shared", ""); a.StatusCode != 200 {
		t.Errorf("shared route: got %d %s, want 200", a.StatusCode, a.Text)
	}
	if got := h.Count(botReports); got != 2 {
		t.Errorf("%d bot reports, want 2", got)
	}
}

func TestGateBots_TwelveRequestsInTwoSecondsAreSuspect(t *testing.T) {
	t.Parallel()
	h := newHarness(t, enforceFlags)
	cookie := ""
	for n := range 12 {
		a := h.getAs(functest.Firefox, "/read", cookie)
		if got, want := a.StatusCode == 429, n == 11; got != want {
			t.Fatalf("request %d: rejected %t, want %t: %s", n+1, got, want, a.Text)
		}
		if n == 0 {
			cookie = a.SessionCookie()
		}
		h.Advance(170 * time.Millisecond)
	}
	if diff := cmp.Diff([]string{cookie + " suspect challenge cadence 12 reqs/2s"}, h.verdictRows()); diff != "" {
		t.Errorf("verdicts (-want +got):\n%s", diff)
	}
	h.Advance(3 * time.Second)
	h.getAs(functest.Firefox, "/read", cookie)
	for range 40 { // telemetry and shared requests do not count towards the cadence
		h.Advance(50 * time.Millisecond)
		for path, want := range map[string]int{"/telemetry": 204, "/shared": 200} {
			if a := h.getAs(functest.Firefox, path, cookie); a.StatusCode != want {
				t.Fatalf("%s: got %d %s, want %d", path, a.StatusCode, a.Text, want)
			}
		}
	}
}

// A guest browses for an hour, at the pace of a person, page by page.
func TestGateBots_HumanPaceForAnHourIsNotSuspect(t *testing.T) {
	t.Parallel()
	h := newHarness(t, enforceFlags)
	cookie, requests := "", 0
	for began := h.Now(); h.Now().Sub(began) < time.Hour; h.Advance(time.Duration(700+1300*(requests%7)) * time.Millisecond) {
		page := [][]string{
			{"/read", "/read", "/read", "/read", "/shared", "/telemetry"}, {"/read", "/read", "/shared"}, {"/shared", "/shared", "/read"}, {"/handoff"},
		}[requests%4]
		for _, path := range page {
			a := h.getAs(functest.IPhone, path, cookie)
			if a.StatusCode >= 300 {
				t.Fatalf("request %d after %v: got %d %s, want success", requests, h.Now().Sub(began), a.StatusCode, a.Text)
			}
			if cookie == "" {
				cookie = a.SessionCookie()
			}
			requests++
		}
	}
	if requests < 1000 {
		t.Errorf("%d requests, want at least 1000", requests)
	}
	if got := h.verdictRows(); len(got) != 0 {
		t.Errorf("verdicts %q, want none", got)
	}
}

func TestGateBots_SolvedChallengeIsValidForAnHour(t *testing.T) {
	t.Parallel()
	h := newHarness(t, enforceFlags)
	began := h.Now()
	token := solveChallenge(t, h.getAs(curlAgent, "/read", ""))
	a := h.getAs(curlAgent, "/read", "", challenge.Header, token)
	cookie := a.SessionCookie()
	if a.StatusCode != 204 || cookie == "" {
		t.Fatalf("with the solution: got %d %s and cookie %q, want 204 and a cookie", a.StatusCode, a.Text, cookie)
	}
	h.RoundTrips.TakeCount()
	for _, path := range []string{"/read", "/handoff", "/telemetry"} {
		a := h.getAs(curlAgent, path, cookie)
		if trips := h.RoundTrips.TakeCount(); a.StatusCode != 204 || trips != 1 {
			t.Errorf("%s: got %d in %d round trips, want 204 in 1: %s", path, a.StatusCode, trips, a.Text)
		}
	}
	requireChallenge(t, h.getAs(curlAgent, "/read", "")) // another client
	// the token of another client
	requireChallenge(t, h.getAs("wget/1.2", "/read", "", challenge.Header, token))
	// a shared route reads no cookie
	requireChallenge(t, h.getAs(curlAgent, "/shared", cookie))
	human := h.getAs(functest.Firefox, "/shared", "")
	solved := h.getAs(curlAgent, "/shared", "", challenge.Header, token)
	if solved.StatusCode != 200 {
		t.Errorf("the shared response of a solved challenge is %d, want 200: %s", solved.StatusCode, solved.Text)
	}
	if diff := cmp.Diff(responseOf(human), responseOf(solved)); diff != "" {
		t.Errorf("the shared response of a solved challenge differs (-human +solved):\n%s", diff)
	}
	ttl := h.RDB.PTTL(t.Context(), h.Deps.Keys.SessionPart(cookie, "challenge")).Val()
	if ttl > time.Hour || ttl < 58*time.Minute {
		t.Errorf("the proof expires in %v, want 58 to 60 minutes", ttl)
	}
	h.Set(began.Add(61 * time.Minute))
	requireChallenge(t, h.getAs(curlAgent, "/shared", "", challenge.Header, token))
	requireChallenge(t, h.getAs(curlAgent, "/read", "", challenge.Header, token))
	h.RDB.Del(t.Context(), h.Deps.Keys.SessionPart(cookie, "challenge")) // Redis expires by its own clock
	requireChallenge(t, h.getAs(curlAgent, "/read", cookie))
}

type response struct {
	Status  int
	Body    string
	Headers []string // names
}

func responseOf(a *functest.Result) response {
	return response{a.StatusCode, a.Text, slices.Sorted(maps.Keys(a.Header))}
}

// recaptchaServer imitates reCAPTCHA: a token that starts with "a-person" scores 0.9, any other
// 0.1.
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
		score := "0.1"
		if strings.HasPrefix(q.Event.Token, "a-person") {
			score = "0.9"
		}
		fmt.Fprintf(w, `{"tokenProperties":{"valid":true,"createTime":%q,"hostname":"guests.example","action":%q},"riskAnalysis":{"score":%s}}`,
			time.Now().UTC().Format(time.RFC3339), q.Event.ExpectedAction, score)
	}))
	t.Cleanup(g.Close)
	return g
}

// requireCalls fails the test unless the server was called so often.
func (g *recaptchaServer) requireCalls(t testing.TB, want int64) {
	t.Helper()
	if got := g.calls.Load(); got != want {
		t.Errorf("reCAPTCHA was called %d times, want %d", got, want)
	}
}

type staticToken string

func (s staticToken) Token(context.Context) (string, error) { return string(s), nil }

func TestGateBots_RecaptchaCalledOnceForSuspectsOnly(t *testing.T) {
	t.Parallel()
	g := newRecaptchaServer(t)
	h := &harness{Harness: functest.New(t)}
	h.APIDocument, h.BasePath = "", ""
	e := h.environment(enforceFlags)
	e.Recaptcha = challenge.Config{Project: "p", SiteKey: "site", Hosts: []string{"guests.example"}, URL: g.URL, Tokens: staticToken("ours")}
	h.mountRoutes(e)
	person, robot := "a-person-0123456789abc", "a-robot-0123456789abcd"
	h.getAs(functest.Firefox, "/read", "", challenge.Header, person)
	if _, providers := requireChallenge(t, h.getAs(curlAgent, "/read", "")); providers != 2 {
		t.Errorf("the challenge has %d providers, want 2", providers)
	}
	g.requireCalls(t, 0)
	a := h.getAs(curlAgent, "/read", "", challenge.Header, person)
	if a.StatusCode != 204 {
		t.Fatalf("with the token of a person: got %d %s, want 204", a.StatusCode, a.Text)
	}
	g.requireCalls(t, 1)
	for range 3 {
		if again := h.getAs(curlAgent, "/read", a.SessionCookie(), challenge.Header, person); again.StatusCode != 204 {
			t.Errorf("with the same token again: got %d %s, want 204", again.StatusCode, again.Text)
		}
	}
	g.requireCalls(t, 1)
	requireRejectedAsBot(t, h.getAs(curlAgent, "/read", "", challenge.Header, robot))
	got, want := h.verdictRows(), "- bot hard-block ua-pattern tool-curl, recaptcha score-10"
	if len(got) == 0 || got[len(got)-1] != want {
		t.Errorf("verdicts %q, want %q as the last", got, want)
	}
}

func TestGateBots_NoEventAfterOptOut(t *testing.T) {
	t.Parallel()
	h := newHarness(t, observeFlags)
	for name, c := range map[string]struct {
		first, then []string // headers of the request that starts the session, and of the suspect request
		noCookie    bool     // of the suspect request
		events      map[string]int
	}{
		"browser opts out in both requests": {
			[]string{"Sec-GPC", "1"}, []string{"Sec-GPC", "1"}, false, map[string]int{"/read": 0, "/shared": 0, "/malformed": 0},
		},
		"session opted out": { // the shared route reads no cookie, so its event names no session
			[]string{"DNT", "1"}, nil, false, map[string]int{"/read": 0, "/shared": 1, "/malformed": 0},
		},
		"browser opts out without a cookie": {
			nil, []string{"DNT", "1"}, true, map[string]int{"/shared": 0, "/malformed": 0},
		},
	} {
		for path, want := range c.events {
			t.Run(name+path, func(t *testing.T) {
				h.Advance(time.Minute)
				agent := curlAgent + " " + name
				cookie := h.getAs(agent, "/telemetry", "", c.first...).SessionCookie()
				h.Exec("DELETE FROM bff_consumer.bot_score_log")
				h.Exec("DELETE FROM bff_consumer.outbox")
				h.Advance(time.Minute)
				if c.noCookie {
					cookie = ""
				}
				h.getAs(agent, path, cookie, c.then...)
				if got := h.Count(botReports); got != want {
					t.Errorf("%d bot reports, want %d", got, want)
				}
				if got := h.verdictRows(); len(got) != 1 || !strings.HasPrefix(got[0], "- suspect") {
					t.Errorf("verdicts %q, want a single suspect without a session", got)
				}
			})
		}
	}
}

func TestGateBots_CountsNewSessionsPerClient(t *testing.T) {
	t.Parallel()
	h := newHarness(t, observeFlags)
	for range 3 {
		h.getAs(functest.Firefox, "/read", "")
	}
	keys := h.RDB.Keys(t.Context(), "*:bot:sessions:*").Val()
	if len(keys) != 1 {
		t.Fatalf("keys %q, want a single one", keys)
	}
	if got := h.RDB.ZCard(t.Context(), keys[0]).Val(); got != 3 {
		t.Errorf("%d sessions of the client, want 3", got)
	}
}

func TestGateBots_CookieOfAnotherBrowserIsASignal(t *testing.T) {
	t.Parallel()
	h := newHarness(t, enforceFlags)
	cookie := h.getAs(functest.Firefox, "/read", "").SessionCookie()
	requireChallenge(t, h.getAs(curlAgent, "/read", cookie))
	want := []string{"- suspect challenge ua-pattern tool-curl, header-anomaly cookie-of-another-browser"}
	if diff := cmp.Diff(want, h.verdictRows()); diff != "" {
		t.Errorf("verdicts (-want +got):\n%s", diff)
	}
}
