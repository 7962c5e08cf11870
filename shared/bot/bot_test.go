package bot

import (
	"fmt"
	"math"
	"math/rand/v2"
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
	// sharedGroup is a group of guests who are fast together, this one of them slow.
	sharedGroup = Cadence{Group: RequestCounts{40, 200}, Session: RequestCounts{3, 9}, HasCookie: true, SinceCookie: 10 * time.Millisecond}
	// fastSession is one session that is fast by itself.
	fastSession = Cadence{Group: RequestCounts{12, 12}, Session: RequestCounts{12, 12}, HasCookie: true, SinceCookie: 10 * time.Millisecond}
)

func TestEvaluate_SignalWeights(t *testing.T) {
	tool, driver := agent.Classify("curl/8"), agent.Classify(headless)
	for name, c := range map[string]struct {
		of      Evidence
		value   float64
		verdict Verdict
		reasons string
	}{
		"a guest":                        {Evidence{}, 0, Human, ""},
		"a tool":                         {Evidence{Agent: tool}, 0.5, Suspect, "ua-pattern 0.50 tool-curl"},
		"nobody says nothing":            {Evidence{Agent: agent.Classify("")}, 0.5, Suspect, "ua-pattern 0.50 empty"},
		"a driven browser":               {Evidence{Agent: driver}, 0.4, Human, "ua-pattern 0.40 automation-headless"},
		"a driven browser, odd headers":  {Evidence{Agent: driver, Anomaly: "no-accept"}, 0.55, Suspect, "ua-pattern 0.40 automation-headless, header-anomaly 0.15 no-accept"},
		"odd headers":                    {Evidence{Anomaly: "no-accept"}, 0.15, Human, "header-anomaly 0.15 no-accept"},
		"a cookie of another browser":    {Evidence{CookieMismatch: true}, 0.15, Human, "header-anomaly 0.15 cookie-of-another-browser"},
		"both":                           {Evidence{CookieMismatch: true, Anomaly: "no-accept"}, 0.15, Human, "header-anomaly 0.15 no-accept"},
		"fast guests at one address":     {Evidence{History: withCadence(sharedGroup)}, 0.3, Human, "cadence 0.30 40 reqs/2s"},
		"and one of them with a change":  {Evidence{History: withCadence(sharedGroup), CookieMismatch: true}, 0.45, Suspect, "cadence 0.30 40 reqs/2s, header-anomaly 0.15 cookie-of-another-browser"},
		"a session that is fast":         {Evidence{History: withCadence(fastSession)}, 0.45, Suspect, "cadence 0.45 12 reqs/2s"},
		"a fast tool":                    {Evidence{Agent: tool, History: withCadence(fastSession)}, 0.95, Bot, "ua-pattern 0.50 tool-curl, cadence 0.45 12 reqs/2s"},
		"50 sessions of a model":         {Evidence{History: History{Sessions: 50}}, 0, Human, ""},
		"150":                            {Evidence{History: History{Sessions: 150}}, 0.13, Human, "fingerprint-collision 0.13 shared-with-150-sessions"},
		"250":                            {Evidence{History: History{Sessions: 250}}, 0.25, Human, "fingerprint-collision 0.25 shared-with-250-sessions"},
		"as many as are kept":            {Evidence{History: History{Sessions: 256}}, 0.25, Human, "fingerprint-collision 0.25 shared-with-256-sessions"},
		"a thief's model":                {Evidence{History: History{Replays: 1}}, 0.05, Human, "fingerprint-collision 0.05 handoff-replayed"},
		"a busy thief's":                 {Evidence{History: History{Replays: 99}}, 0.1, Human, "fingerprint-collision 0.10 handoff-replayed"},
		"a guest with it, among others":  {Evidence{History: History{Cadence: sharedGroup, Replays: 99}}, 0.4, Human, "cadence 0.30 40 reqs/2s, fingerprint-collision 0.10 handoff-replayed"},
		"both collisions":                {Evidence{History: History{Sessions: 250, Replays: 9}}, 0.25, Human, "fingerprint-collision 0.25 shared-with-250-sessions"},
		"solved":                         {Evidence{Agent: tool, Challenge: &ChallengeResult{-0.5, "score-90"}}, 0, Human, "ua-pattern 0.50 tool-curl, recaptcha -0.50 score-90"},
		"failed":                         {Evidence{Agent: tool, Challenge: &ChallengeResult{7, "score-10"}}, 1, Bot, "ua-pattern 0.50 tool-curl, recaptcha 0.50 score-10"},
		"everything":                     {Evidence{Agent: tool, History: History{fastSession, 250, 9}, Anomaly: "no-accept"}, 1, Bot, "ua-pattern 0.50 tool-curl, cadence 0.45 12 reqs/2s, fingerprint-collision 0.25 shared-with-250-sessions, header-anomaly 0.15 no-accept"},
		"a search engine that claims it": {Evidence{Agent: agent.Classify(googlebot)}, 0.5, Suspect, "ua-pattern 0.50 tool-Googlebot"},
		"one that is it":                 {Evidence{Agent: agent.Classify(googlebot), Verified: true, History: withCadence(fastSession)}, 0, Human, "ua-pattern 0.00 verified-googlebot"},
	} {
		s := Evaluate(c.of)
		if s.Value != c.value || s.Verdict != c.verdict || formatSignals(s) != c.reasons {
			t.Errorf("%s: %v %s %q, want %v %s %q", name, s.Value, s.Verdict, formatSignals(s), c.value, c.verdict, c.reasons)
		}
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
	const never = -time.Millisecond
	for name, c := range map[string]struct {
		of       Cadence
		campaign bool
		want     float64
		detail   string
	}{
		"11 in 2 s":                             {Cadence{Group: RequestCounts{11, 11}, SinceCookie: never}, false, 0, ""},
		"12 in 2 s without a cookie":            {Cadence{Group: RequestCounts{12, 12}, SinceCookie: never}, false, singleClientWeight, "12 reqs/2s"},
		"the last cookie is longer ago":         {Cadence{Group: RequestCounts{12, 30}, SinceCookie: ShortWindow}, false, singleClientWeight, "12 reqs/2s"},
		"one of them had a cookie":              {Cadence{Group: RequestCounts{12, 12}, SinceCookie: ShortWindow - 1}, false, fastWeight, "12 reqs/2s"},
		"this one has":                          {Cadence{Group: RequestCounts{12, 12}, Session: RequestCounts{1, 1}, HasCookie: true, SinceCookie: never}, false, fastWeight, "12 reqs/2s"},
		"12 in 2 s by one session":              {Cadence{Group: RequestCounts{12, 12}, Session: RequestCounts{12, 12}, HasCookie: true}, false, singleClientWeight, "12 reqs/2s"},
		"11 of 12 by one session":               {Cadence{Group: RequestCounts{12, 12}, Session: RequestCounts{11, 11}, HasCookie: true}, false, fastWeight, "12 reqs/2s"},
		"120 in a minute":                       {Cadence{Group: RequestCounts{4, 120}, SinceCookie: never}, false, 0, ""},
		"121 in a minute without a cookie":      {Cadence{Group: RequestCounts{4, 121}, SinceCookie: never}, false, singleClientWeight, "121 reqs/60s"},
		"121, one of them with":                 {Cadence{Group: RequestCounts{4, 121}, SinceCookie: LongWindow - 1}, false, fastWeight, "121 reqs/60s"},
		"121 by one session":                    {Cadence{Group: RequestCounts{4, 121}, Session: RequestCounts{4, 121}, HasCookie: true}, false, singleClientWeight, "121 reqs/60s"},
		"a campaign's first visits":             {Cadence{Group: RequestCounts{47, 47}, SinceCookie: never}, true, fastWeight, "47 reqs/2s"},
		"more than a campaign brings":           {Cadence{Group: RequestCounts{48, 48}, SinceCookie: never}, true, singleClientWeight, "48 reqs/2s"},
		"a session is not excused by campaigns": {Cadence{Group: RequestCounts{12, 12}, Session: RequestCounts{12, 12}, HasCookie: true}, true, singleClientWeight, "12 reqs/2s"},
		"looked at without its session":         {Cadence{Group: RequestCounts{30, 90}, SinceCookie: 0}, false, fastWeight, "30 reqs/2s"},
	} {
		if weight, detail := c.of.weigh(c.campaign); weight != c.want || detail != c.detail {
			t.Errorf("%s: %v %q, want %v %q", name, weight, detail, c.want, c.detail)
		}
	}
}

func TestActionFor_ModeAndVerdict(t *testing.T) {
	got := map[string]Action{}
	for _, mode := range []flags.BotMode{flags.BotOff, flags.BotObserve, flags.BotEnforce} {
		for _, v := range []Verdict{Human, Suspect, Bot} {
			got[string(mode)+" "+string(v)] = ActionFor(mode, v, false)
			got[string(mode)+" "+string(v)+" solved"] = ActionFor(mode, v, true)
		}
	}
	for what, act := range got {
		want := map[string]Action{"enforce suspect": Challenge, "enforce bot": HardBlock, "enforce bot solved": HardBlock}[what]
		if want == "" {
			want = None
		}
		if act != want {
			t.Errorf("%s: %s, want %s", what, act, want)
		}
	}
}

// A thief chooses a fingerprint that many guests have. None of them is challenged for his replays.
func TestEvaluate_PenaltyAloneIsNotSuspect(t *testing.T) {
	shared := Cadence{Group: RequestCounts{40, 100}, Session: RequestCounts{1, 4}, HasCookie: true}
	for sessions := range 251 {
		seen := History{Cadence: shared, Sessions: sessions}
		without := Evaluate(Evidence{History: seen}).Verdict
		for seen.Replays = range 5 {
			if with := Evaluate(Evidence{History: seen}).Verdict; with != without {
				t.Fatalf("%d sessions, %d replays: %s, without them %s", sessions, seen.Replays, with, without)
			}
		}
	}
}

// Every name that a judgement may have makes a detail that the event may carry.
func TestEvaluate_DetailsMatchEventSchema(t *testing.T) {
	form := regexp.MustCompile(`^([a-z][A-Za-z0-9-]{0,47}|[0-9]{1,5} reqs/[0-9]{1,4}s)$`)
	for _, ua := range []string{
		"", "curl/8", headless, googlebot, "Acme hotel prices", "Mozilla/5.0 Acme/1.0", "x@example.org", "node.js", "page speed x",
		"www.uptime.com", "PTST/1", "Macintosh; Intel Mac OS X) Word/16",
	} {
		e := Evidence{Agent: agent.Classify(ua), History: History{Cadence{Group: RequestCounts{512, 512}, SinceCookie: -1}, 256, 3}, Anomaly: "no-accept"}
		for _, s := range Evaluate(e).Signals {
			if !form.MatchString(s.Detail) {
				t.Errorf("%q of %q", s.Detail, ua)
			}
		}
	}
	long := agentDetail(agent.Classification{Kind: agent.Automation, Name: strings.Repeat("-x", 40)})
	if !form.MatchString(long) || len(long) > 48 {
		t.Errorf("%q", long)
	}
}

// Whatever is observed, a score is one, and no kind of signal weighs more than it may.
func TestEvaluate_AnyEvidenceGivesValidScore(t *testing.T) {
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
			t.Fatalf("%+v of %+v", s, e)
		}
		seen[s.Verdict]++
		kinds := map[string]float64{}
		for _, r := range s.Signals {
			kinds[r.Kind] += r.Weight
		}
		if kinds[cadence] > singleClientWeight || roundHundredths(kinds[collision]) > maxCollisionWeight || kinds[uaPattern] > 0.5 || kinds[anomaly] > 0.15 {
			t.Fatalf("a kind weighs too much: %v", kinds)
		}
		if diff := cmp.Diff(s, Evaluate(e)); diff != "" {
			t.Fatal("the same evidence, another score")
		}
	}
	if len(seen) != 3 {
		t.Errorf("%v", seen)
	}
}
