// Package bot detects bots: it collects the evidence of a request, evaluates it to a score and a
// verdict, maps the verdict to an action, and records the verdict. Evaluation is pure. The package
// does not carry out the action, and it stores no address and no user agent.
package bot

import (
	"math"
	"strconv"
	"strings"
	"time"

	"melmastoon.ghasi.io/bff-consumer/shared/bot/agent"
	"melmastoon.ghasi.io/bff-consumer/shared/event"
	"melmastoon.ghasi.io/bff-consumer/shared/flags"
)

// Verdict classifies a client by its score.
type Verdict string

// The verdicts and the scores from which they apply.
const (
	Human   Verdict = "human"
	Suspect Verdict = "suspect" // from 0.45
	Bot     Verdict = "bot"     // from 0.85

	SuspectThreshold = 0.45
	BotThreshold     = 0.85
)

// The kinds of signals in docs/spec/limits.md#bot-detection.
const (
	uaPattern = "ua-pattern"
	cadence   = "cadence"
	collision = "fingerprint-collision"
	challenge = "recaptcha"
	anomaly   = "header-anomaly"
)

// Evidence is the evidence of one request. The zero value evaluates to human.
type Evidence struct {
	Agent          agent.Classification
	Verified       bool   // the client is the search engine that Agent names
	Anomaly        string // anomaly of the headers; see agent.Anomaly
	CookieMismatch bool   // the session's cookie was issued to another browser or system
	Campaign       bool   // campaign mode: many first visits at once are expected
	History
	Challenge *ChallengeResult // nil without a challenge result
}

// History is the evidence that Redis holds. It is the zero value if Redis was not read or did not
// answer.
type History struct {
	Cadence  Cadence
	Sessions int // sessions of the client group that started within 24 hours
	Replays  int // handoff replays by this fingerprint within 24 hours
}

// Cadence counts the requests of a client group, this request included. A client group is a
// fingerprint within an address group.
type Cadence struct {
	Group     RequestCounts
	Session   RequestCounts // requests of this request's session alone
	HasCookie bool          // this request has a session cookie
	// since the group's last request with a cookie; negative without one in the last minute
	SinceCookie time.Duration
}

// RequestCounts counts the requests of the last 2 s (Burst) and of the last 60 s (Minute).
type RequestCounts struct{ Burst, Minute int }

// ChallengeResult is the result of a challenge.
type ChallengeResult struct {
	Weight float64 // −0.5 human … +0.5 bot
	Detail string  // [a-z][A-Za-z0-9-]*, at most 48 characters
}

// Score is the result of an evaluation. Signals has the signals with a weight, and the signal of a
// verified search engine. The details of signals never contain text of the client.
type Score struct {
	Value   float64 // 0 human … 1 bot, in hundredths
	Verdict Verdict
	Signals []event.BotSignal
}

// Evaluate scores evidence by docs/spec/limits.md#bot-detection. It is pure, costs some arithmetic
// and never fails. A verified search engine is human regardless of other evidence. The weight of a
// challenge is limited to −0.5 … 0.5, and a NaN is ignored. The score is limited to 0 … 1. Missing
// evidence, as without Redis, adds no weight. An Agent.Kind other than the constants panics.
func Evaluate(e Evidence) Score {
	if e.Verified {
		return Score{0, Human, []event.BotSignal{{Kind: uaPattern, Detail: "verified-" + e.Agent.Crawler}}}
	}
	var s Score
	add := func(kind string, weight float64, detail string) {
		if weight = roundHundredths(weight); weight != 0 && !math.IsNaN(weight) {
			s.Signals = append(s.Signals, event.BotSignal{Kind: kind, Weight: weight, Detail: detail})
			s.Value += weight
		}
	}
	add(uaPattern, e.Agent.Kind.Weight(), agentDetail(e.Agent))
	weight, detail := e.Cadence.weigh(e.Campaign)
	add(cadence, weight, detail)
	shared := roundHundredths(collisionWeight(e.Sessions))
	add(collision, shared, "shared-with-"+strconv.Itoa(e.Sessions)+"-sessions")
	// Where most guests have the same phone, a replay penalty hits a whole country. So the penalty
	// counts only as far as it exceeds the weight of collisions. Otherwise two replays anywhere
	// would have the guests of every busy mobile carrier challenged.
	add(collision, max(min(replayWeight*float64(e.Replays), maxReplayWeight)-shared, 0), "handoff-replayed")
	switch { // at most one signal of this kind
	case e.Anomaly != "":
		add(anomaly, agent.AnomalyWeight, e.Anomaly)
	case e.CookieMismatch:
		add(anomaly, agent.AnomalyWeight, "cookie-of-another-browser")
	}
	if e.Challenge != nil {
		add(challenge, max(-0.5, min(e.Challenge.Weight, 0.5)), e.Challenge.Detail)
	}
	s.Value = max(0, min(roundHundredths(s.Value), 1))
	s.Verdict = verdict(s.Value)
	return s
}

// verdict returns the verdict for a score.
func verdict(value float64) Verdict {
	switch {
	case value >= BotThreshold:
		return Bot
	case value >= SuspectThreshold:
		return Suspect
	default:
		return Human
	}
}

// roundHundredths removes the rounding errors of binary fractions, so that 0.3 + 0.15 reaches the
// threshold 0.45.
func roundHundredths(f float64) float64 { return math.Round(f*100) / 100 }

// agentDetail returns the kind of a classification and the name of the matched rule in the form
// that the event schema allows, at most 48 characters. It never contains text of the user agent.
func agentDetail(c agent.Classification) string {
	clean := strings.Map(func(r rune) rune {
		if 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' {
			return r
		}
		return '-'
	}, c.Name)
	if clean == "" || clean == c.Kind.String() {
		return c.Kind.String()
	}
	name := c.Kind.String() + "-" + clean
	return strings.TrimRight(name[:min(len(name), 48)], "-")
}

// Action is the reaction to a verdict.
type Action string

// The actions, by their names in the event.
const (
	None      Action = "none"
	Challenge Action = "challenge"  // 429 with a challenge
	HardBlock Action = "hard-block" // 429 without a challenge
)

// ActionFor returns the action for a verdict in a mode: None in any mode but flags.BotEnforce and
// for a human. solved means that the client recently solved a challenge: a suspect passes then, a
// bot does not. An unknown verdict counts as suspect. Pure; it never fails.
func ActionFor(mode flags.BotMode, v Verdict, solved bool) Action {
	switch {
	case mode != flags.BotEnforce || v == Human:
		return None
	case v == Bot:
		return HardBlock
	case solved:
		return None
	default:
		return Challenge
	}
}
