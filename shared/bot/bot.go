// Package bot owns the detector: what was observed of a request, the score that follows from it, what is done about it,
// and how that is recorded. Scoring is pure. It never turns anybody away by itself, and it keeps no address and no user
// agent.
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

// Verdict is what a client is taken for.
type Verdict string

// Verdicts, and the scores from which they hold.
const (
	Human   Verdict = "human"
	Suspect Verdict = "suspect" // from 0.45
	Bot     Verdict = "bot"     // from 0.85

	SuspectThreshold = 0.45
	BotThreshold     = 0.85
)

// The kinds of signals, as docs/spec/limits.md#bot-detection names them.
const (
	uaPattern = "ua-pattern"
	cadence   = "cadence"
	collision = "fingerprint-collision"
	challenge = "recaptcha"
	anomaly   = "header-anomaly"
)

// Evidence is what was observed of one request. The zero value is a human's.
type Evidence struct {
	Agent          agent.Classification
	Verified       bool   // it is the search engine that Agent names
	Anomaly        string // what is wrong with its headers; see agent.Anomaly
	CookieMismatch bool   // its cookie was given to another browser or system
	Campaign       bool   // campaign mode: many first visits at once are to be expected
	History
	Challenge *ChallengeResult // to a challenge; nil: none was given
}

// History is what Redis knows of the client's past; the zero value where it was not asked or did not answer.
type History struct {
	Cadence  Cadence
	Sessions int // that began in 24 hours with this fingerprint and address group
	Replays  int // of handoffs that this fingerprint was caught at in 24 hours
}

// Cadence is the requests of a client group, which is a fingerprint at an address group, this one included.
type Cadence struct {
	Group       RequestCounts
	Session     RequestCounts // those that this request's session made by itself
	HasCookie   bool          // this request has a session's cookie
	SinceCookie time.Duration // since the group's last request with a cookie; negative: none in a minute
}

// RequestCounts is how many requests there were of late.
type RequestCounts struct{ Burst, Minute int } // in 2 s, in 60 s

// ChallengeResult is what came of a challenge.
type ChallengeResult struct {
	Weight float64 // −0.5 a person … +0.5 a program
	Detail string  // [a-z][A-Za-z0-9-]*, up to 48
}

// Score is a verdict and its reasons. Signals are what weighed, by kind; none of their details is text of the client's.
type Score struct {
	Value   float64 // 0 human … 1 bot, in hundredths
	Verdict Verdict
	Signals []event.BotSignal
}

// Evaluate weighs evidence by docs/spec/limits.md#bot-detection. A verified search engine is human whatever it does.
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
	// The penalty is a whole country's where all have one phone: it adds nothing where collisions weigh as much already, or
	// two replays anywhere would have the guests of every busy carrier challenged.
	add(collision, max(min(replayWeight*float64(e.Replays), maxReplayWeight)-shared, 0), "handoff-replayed")
	switch { // one reason is enough: the kind weighs the same
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

// roundHundredths keeps sums off the edges of binary fractions: 0.3 + 0.15 is a suspect's.
func roundHundredths(f float64) float64 { return math.Round(f*100) / 100 }

// agentDetail is what a judgement was made by, in the form that the event allows: a name of ours or of the list, never text of
// the agent itself.
func agentDetail(j agent.Classification) string {
	clean := strings.Map(func(r rune) rune {
		if 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' {
			return r
		}
		return '-'
	}, j.Name)
	if clean == "" || clean == j.Kind.String() {
		return j.Kind.String()
	}
	name := j.Kind.String() + "-" + clean
	return strings.TrimRight(name[:min(len(name), 48)], "-")
}

// Action is what is done about a request.
type Action string

// Acts, as the event names them.
const (
	None      Action = "none"
	Challenge Action = "challenge"  // 429 with what solving it needs
	HardBlock Action = "hard-block" // nothing that the client can solve
)

// ActionFor is what is done about a verdict in a mode. solved says that the client solved a challenge of late: that lets a
// suspect pass, a bot not.
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
