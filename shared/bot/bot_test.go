package bot

import (
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"melmastoon.ghasi.io/bff-consumer/shared/bot/agent"
	"melmastoon.ghasi.io/bff-consumer/shared/flags"
)

const (
	chrome    = "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/147.0.0.0 Safari/537.36"
	headless  = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) HeadlessChrome/147.0.0.0 Safari/537.36"
	googlebot = "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)"
)

func withCadence(c Cadence) History { return History{Cadence: c} }

var (
	// sharedGroup is a client group of several guests: the group is fast, this guest's session is
	// slow.
	sharedGroup = Cadence{Group: RequestCounts{40, 200}, Session: RequestCounts{3, 9}, HasCookie: true, SinceCookie: 10 * time.Millisecond}
	// fastSession is a single fast session.
	fastSession = Cadence{Group: RequestCounts{12, 12}, Session: RequestCounts{12, 12}, HasCookie: true, SinceCookie: 10 * time.Millisecond}
)

func TestEvaluate_SignalWeights(t *testing.T) {
	t.Parallel()
	tool, driver := agent.Classify("curl/8"), agent.Classify(headless)
	for name, c := range map[string]struct {
		of      Evidence
		value   float64
		verdict Verdict
		signals string
	}{
		"a guest":              {Evidence{}, 0, Human, ""},
		"a tool":               {Evidence{Agent: tool}, 0.5, Suspect, "ua-pattern 0.50 tool-curl"},
		"an empty user agent":  {Evidence{Agent: agent.Classify("")}, 0.5, Suspect, "ua-pattern 0.50 empty"},
		"an automated browser": {Evidence{Agent: driver}, 0.4, Human, "ua-pattern 0.40 automation-headless"},
		"an automated browser with a header anomaly": {Evidence{Agent: driver, Anomaly: "no-accept"}, 0.55, Suspect, "ua-pattern 0.40 automation-headless, header-anomaly 0.15 no-accept"},
		"a header anomaly":                           {Evidence{Anomaly: "no-accept"}, 0.15, Human, "header-anomaly 0.15 no-accept"},
		"the cookie of another browser":              {Evidence{CookieMismatch: true}, 0.15, Human, "header-anomaly 0.15 cookie-of-another-browser"},
		"cookie mismatch and header anomaly":         {Evidence{CookieMismatch: true, Anomaly: "no-accept"}, 0.15, Human, "header-anomaly 0.15 no-accept"},
		"a fast shared group":                        {Evidence{History: withCadence(sharedGroup)}, 0.3, Human, "cadence 0.30 40 reqs/2s"},
		"a fast shared group with a cookie mismatch": {Evidence{History: withCadence(sharedGroup), CookieMismatch: true}, 0.45, Suspect, "cadence 0.30 40 reqs/2s, header-anomaly 0.15 cookie-of-another-browser"},
		"a fast session":                             {Evidence{History: withCadence(fastSession)}, 0.45, Suspect, "cadence 0.45 12 reqs/2s"},
		"a fast tool":                                {Evidence{Agent: tool, History: withCadence(fastSession)}, 0.95, Bot, "ua-pattern 0.50 tool-curl, cadence 0.45 12 reqs/2s"},
		"50 sessions of a group":                     {Evidence{History: History{Sessions: 50}}, 0, Human, ""},
		"150 sessions of a group":                    {Evidence{History: History{Sessions: 150}}, 0.13, Human, "fingerprint-collision 0.13 shared-with-150-sessions"},
		"250 sessions of a group":                    {Evidence{History: History{Sessions: 250}}, 0.25, Human, "fingerprint-collision 0.25 shared-with-250-sessions"},
		"256 sessions of a group":                    {Evidence{History: History{Sessions: 256}}, 0.25, Human, "fingerprint-collision 0.25 shared-with-256-sessions"},
		"one handoff replay":                         {Evidence{History: History{Replays: 1}}, 0.05, Human, "fingerprint-collision 0.05 handoff-replayed"},
		"99 handoff replays":                         {Evidence{History: History{Replays: 99}}, 0.1, Human, "fingerprint-collision 0.10 handoff-replayed"},
		"99 handoff replays in a fast shared group":  {Evidence{History: History{Cadence: sharedGroup, Replays: 99}}, 0.4, Human, "cadence 0.30 40 reqs/2s, fingerprint-collision 0.10 handoff-replayed"},
		"sessions and replays":                       {Evidence{History: History{Sessions: 250, Replays: 9}}, 0.25, Human, "fingerprint-collision 0.25 shared-with-250-sessions"},
		"a tool with a good challenge result":        {Evidence{Agent: tool, Challenge: &ChallengeResult{-0.5, "score-90"}}, 0, Human, "ua-pattern 0.50 tool-curl, recaptcha -0.50 score-90"},
		"a tool with a bad challenge result":         {Evidence{Agent: tool, Challenge: &ChallengeResult{7, "score-10"}}, 1, Bot, "ua-pattern 0.50 tool-curl, recaptcha 0.50 score-10"},
		"all signals":                                {Evidence{Agent: tool, History: History{fastSession, 250, 9}, Anomaly: "no-accept"}, 1, Bot, "ua-pattern 0.50 tool-curl, cadence 0.45 12 reqs/2s, fingerprint-collision 0.25 shared-with-250-sessions, header-anomaly 0.15 no-accept"},
		"an unverified search engine":                {Evidence{Agent: agent.Classify(googlebot)}, 0.5, Suspect, "ua-pattern 0.50 tool-Googlebot"},
		"a verified search engine":                   {Evidence{Agent: agent.Classify(googlebot), Verified: true, History: withCadence(fastSession)}, 0, Human, "ua-pattern 0.00 verified-googlebot"},
	} {
		t.Run(name, func(t *testing.T) {
			s := Evaluate(c.of)
			if s.Value != c.value || s.Verdict != c.verdict || formatSignals(s) != c.signals {
				t.Errorf("%v %s %q, want %v %s %q", s.Value, s.Verdict, formatSignals(s), c.value, c.verdict, c.signals)
			}
		})
	}
}

func formatSignals(s Score) string {
	var all []string
	for _, r := range s.Signals {
		all = append(all, strings.TrimSpace(r.Kind+" "+formatWeight(r.Weight)+" "+r.Detail))
	}
	return strings.Join(all, ", ")
}

func formatWeight(f float64) string {
	sign := ""
	if f < 0 {
		sign, f = "-", -f
	}
	n := int(f*100 + 0.5)
	return fmt.Sprintf("%s%d.%02d", sign, n/100, n%100)
}

func TestEvaluate_CadenceOfOneOrSeveralClients(t *testing.T) {
	t.Parallel()
	const never = -time.Millisecond
	for name, c := range map[string]struct {
		of       Cadence
		campaign bool
		want     float64
		detail   string
	}{
		"11 in 2 s":                              {Cadence{Group: RequestCounts{11, 11}, SinceCookie: never}, false, 0, ""},
		"12 in 2 s without a cookie":             {Cadence{Group: RequestCounts{12, 12}, SinceCookie: never}, false, singleClientWeight, "12 reqs/2s"},
		"last cookie before the window":          {Cadence{Group: RequestCounts{12, 30}, SinceCookie: ShortWindow}, false, singleClientWeight, "12 reqs/2s"},
		"a cookie within the window":             {Cadence{Group: RequestCounts{12, 12}, SinceCookie: ShortWindow - 1}, false, fastWeight, "12 reqs/2s"},
		"a cookie on this request":               {Cadence{Group: RequestCounts{12, 12}, Session: RequestCounts{1, 1}, HasCookie: true, SinceCookie: never}, false, fastWeight, "12 reqs/2s"},
		"12 in 2 s by one session":               {Cadence{Group: RequestCounts{12, 12}, Session: RequestCounts{12, 12}, HasCookie: true}, false, singleClientWeight, "12 reqs/2s"},
		"11 of 12 by one session":                {Cadence{Group: RequestCounts{12, 12}, Session: RequestCounts{11, 11}, HasCookie: true}, false, fastWeight, "12 reqs/2s"},
		"120 in a minute":                        {Cadence{Group: RequestCounts{4, 120}, SinceCookie: never}, false, 0, ""},
		"121 in a minute without a cookie":       {Cadence{Group: RequestCounts{4, 121}, SinceCookie: never}, false, singleClientWeight, "121 reqs/60s"},
		"121 in a minute, one with a cookie":     {Cadence{Group: RequestCounts{4, 121}, SinceCookie: LongWindow - 1}, false, fastWeight, "121 reqs/60s"},
		"121 in a minute by one session":         {Cadence{Group: RequestCounts{4, 121}, Session: RequestCounts{4, 121}, HasCookie: true}, false, singleClientWeight, "121 reqs/60s"},
		"47 in 2 s in campaign mode":             {Cadence{Group: RequestCounts{47, 47}, SinceCookie: never}, true, fastWeight, "47 reqs/2s"},
		"48 in 2 s in campaign mode":             {Cadence{Group: RequestCounts{48, 48}, SinceCookie: never}, true, singleClientWeight, "48 reqs/2s"},
		"a fast session in campaign mode":        {Cadence{Group: RequestCounts{12, 12}, Session: RequestCounts{12, 12}, HasCookie: true}, true, singleClientWeight, "12 reqs/2s"},
		"a route that does not read the session": {Cadence{Group: RequestCounts{30, 90}, SinceCookie: 0}, false, fastWeight, "30 reqs/2s"},
	} {
		t.Run(name, func(t *testing.T) {
			if weight, detail := c.of.weigh(c.campaign); weight != c.want || detail != c.detail {
				t.Errorf("%v %q, want %v %q", weight, detail, c.want, c.detail)
			}
		})
	}
}

func TestActionFor_ModeAndVerdict(t *testing.T) {
	t.Parallel()
	got := map[string]Action{}
	for _, mode := range []flags.BotMode{flags.BotOff, flags.BotObserve, flags.BotEnforce} {
		for _, v := range []Verdict{Human, Suspect, Bot} {
			got[string(mode)+" "+string(v)] = ActionFor(mode, v, false)
			got[string(mode)+" "+string(v)+" solved"] = ActionFor(mode, v, true)
		}
	}
	want := map[string]Action{}
	for name := range got {
		want[name] = None
	}
	want["enforce suspect"], want["enforce bot"], want["enforce bot solved"] = Challenge, HardBlock, HardBlock
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// A client that replays handoffs may use a fingerprint that many guests have. The penalty must not
// change the verdict for these guests.
func TestEvaluate_PenaltyAloneIsNotSuspect(t *testing.T) {
	t.Parallel()
	shared := Cadence{Group: RequestCounts{40, 100}, Session: RequestCounts{1, 4}, HasCookie: true}
	for sessions := range 251 {
		seen := History{Cadence: shared, Sessions: sessions}
		without := Evaluate(Evidence{History: seen}).Verdict
		for seen.Replays = range 5 {
			if with := Evaluate(Evidence{History: seen}).Verdict; with != without {
				t.Fatalf("%d sessions, %d replays: %s, want %s as without replays", sessions, seen.Replays, with, without)
			}
		}
	}
}

// Every name of a classification gives a detail that the event schema accepts.
func TestEvaluate_DetailsMatchEventSchema(t *testing.T) {
	t.Parallel()
	form := regexp.MustCompile(`^([a-z][A-Za-z0-9-]{0,47}|[0-9]{1,5} reqs/[0-9]{1,4}s)$`)
	for _, ua := range []string{
		"", "curl/8", headless, googlebot, "Acme hotel prices", "Mozilla/5.0 Acme/1.0", "x@example.org", "node.js", "page speed x",
		"www.uptime.com", "PTST/1", "Macintosh; Intel Mac OS X) Word/16",
	} {
		t.Run(ua, func(t *testing.T) {
			e := Evidence{Agent: agent.Classify(ua), History: History{Cadence{Group: RequestCounts{512, 512}, SinceCookie: -1}, 256, 3}, Anomaly: "no-accept"}
			for _, s := range Evaluate(e).Signals {
				if !form.MatchString(s.Detail) {
					t.Errorf("detail %q does not match %s", s.Detail, form)
				}
			}
		})
	}
	long := agentDetail(agent.Classification{Kind: agent.Automation, Name: strings.Repeat("-x", 40)})
	if !form.MatchString(long) || len(long) > 48 {
		t.Errorf("detail %q of %d characters, want at most 48 and the form %s", long, len(long), form)
	}
}

// For any evidence the score is within 0 … 1, matches the verdict and the sum of a signal kind
// stays within its bound.
func TestEvaluate_AnyEvidenceGivesValidScore(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(27, 0))
	agents := []string{"", "curl/8", headless, chrome, googlebot}
	pace := func() RequestCounts { return RequestCounts{random.IntN(60), random.IntN(600)} }
	seen := map[Verdict]int{}
	for range 50_000 {
		e := Evidence{
			Agent: agent.Classify(agents[random.IntN(len(agents))]), Campaign: random.IntN(2) == 0, CookieMismatch: random.IntN(2) == 0,
			History: History{
				Cadence{pace(), pace(), random.IntN(2) == 0, time.Duration(random.IntN(int(2*LongWindow))) - time.Second},
				random.IntN(300), random.IntN(5),
			},
			Challenge: &ChallengeResult{[]float64{0, -0.5, 0.5, -9, 9, math.NaN(), random.Float64()}[random.IntN(7)], "score-90"},
		}
		s := Evaluate(e)
		if !(s.Value >= 0 && s.Value <= 1) || s.Verdict != verdict(s.Value) {
			t.Fatalf("score %+v for %+v, want 0 … 1 and its verdict", s, e)
		}
		seen[s.Verdict]++
		kinds := map[string]float64{}
		for _, r := range s.Signals {
			kinds[r.Kind] += r.Weight
		}
		if kinds[cadence] > singleClientWeight || roundHundredths(kinds[collision]) > maxCollisionWeight || kinds[uaPattern] > 0.5 || kinds[anomaly] > 0.15 {
			t.Fatalf("weights by kind %v exceed a bound", kinds)
		}
		if again := Evaluate(e); !reflect.DeepEqual(s, again) {
			t.Fatal("another score for the same evidence:", cmp.Diff(s, again))
		}
	}
	if len(seen) != 3 {
		t.Errorf("verdicts %v, want all three", seen)
	}
}
