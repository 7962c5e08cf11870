// Package flags owns the switches an operator may turn without a deploy: the document of their values,
// its defaults, and where it is read from. It never makes a request wait and never answers without values.
package flags

import (
	"errors"
	"fmt"
	"maps"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Values is the flags document with every field filled in. It is shared by all requests: read only.
type Values struct {
	CampaignMode  bool               `json:"campaignMode"`  // lists are cached for 5 minutes, handoffs limited more
	Sampling      map[string]float64 `json:"sampling"`      // share of sessions, 0 … 1, by subject ("search.executed"); see Rate
	LimitsEnabled bool               `json:"limitsEnabled"` // false lets everybody through
	Limits        Limits             `json:"limits"`
	BotMode       BotMode            `json:"botMode"`
	Challenge     Challenge          `json:"challenge"`
}

// Limits are requests per minute, by what is asked for.
type Limits struct {
	Read      Limit `json:"read"`
	Handoff   Limit `json:"handoff"`
	Telemetry Limit `json:"telemetry"`
}

// Limit is requests per minute, by who asks.
type Limit struct {
	Cookie      int `json:"cookie"`
	IP          int `json:"ip"`
	Fingerprint int `json:"fingerprint"`
}

// Challenge is what a client that looks like a robot is asked.
type Challenge struct {
	Difficulty int `json:"difficulty"` // of a puzzle, in leading zero bits, 1 … 24: each doubles the work
}

// BotMode says what follows from a verdict.
type BotMode string

const (
	BotOff     BotMode = "off"     // nothing is scored
	BotObserve BotMode = "observe" // verdicts are logged, nobody is stopped
	BotEnforce BotMode = "enforce" // suspects are challenged, bots blocked
)

// Defaults is what an empty document means.
func Defaults() *Values {
	return &Values{
		Sampling:      map[string]float64{"search.executed": 0.1},
		LimitsEnabled: true,
		Limits: Limits{
			Read:      Limit{Cookie: 120, IP: 1200, Fingerprint: 600},
			Handoff:   Limit{Cookie: 10, IP: 120, Fingerprint: 60},
			Telemetry: Limit{Cookie: 240, IP: 2400, Fingerprint: 1200},
		},
		BotMode:   BotEnforce,
		Challenge: Challenge{Difficulty: 16},
	}
}

// SamplingRate is the share of sessions, 0 … 1, that report a subject ("search.executed"); 1 when none is set.
func (v *Values) SamplingRate(name string) float64 {
	if rate, ok := v.Sampling[name]; ok {
		return rate
	}
	return 1
}

// Parse reads a flags document. A field that is absent has its default, an unknown one is ignored, and
// one that cannot be read keeps its value of last (nil: the defaults) and is named in the error. The
// values are usable whatever the error.
func Parse(document []byte, last *Values) (*Values, error) {
	if last == nil {
		last = Defaults()
	}
	var fields map[string]jsontext.Value
	if err := json.Unmarshal(document, &fields); err != nil {
		return last, fmt.Errorf("flags: read the document: %w", err)
	}
	return merge(fields, last)
}

// merge fills each field from its JSON, from the defaults where it is absent, from last where it is bad.
func merge(fields map[string]jsontext.Value, last *Values) (*Values, error) {
	next := Defaults()
	var bad []error
	for _, f := range []struct {
		name string
		read func(data jsontext.Value) error
		keep func()
	}{
		{"campaignMode", decodeInto(&next.CampaignMode), func() { next.CampaignMode = last.CampaignMode }},
		{"sampling", func(data jsontext.Value) error { return decodeSampling(data, &next.Sampling) }, func() { next.Sampling = last.Sampling }},
		{"limitsEnabled", decodeInto(&next.LimitsEnabled), func() { next.LimitsEnabled = last.LimitsEnabled }},
		{"limits", func(data jsontext.Value) error { return decodeLimits(data, &next.Limits) }, func() { next.Limits = last.Limits }},
		{"botMode", func(data jsontext.Value) error { return decodeBotMode(data, &next.BotMode) }, func() { next.BotMode = last.BotMode }},
		{"challenge", func(data jsontext.Value) error { return decodeChallenge(data, &next.Challenge) }, func() { next.Challenge = last.Challenge }},
	} {
		data, ok := fields[f.name]
		if !ok {
			continue
		}
		err := errNull
		if data.Kind() != 'n' { // null would quietly mean false or nothing
			err = f.read(data)
		}
		if err != nil {
			bad = append(bad, fmt.Errorf("flags: read %s: %w", f.name, err))
			f.keep()
		}
	}
	return next, errors.Join(bad...)
}

var errNull = errors.New("is null")

func decodeInto[T any](value *T) func(jsontext.Value) error {
	return func(data jsontext.Value) error { return json.Unmarshal(data, value) }
}

func decodeSampling(data jsontext.Value, sampling *map[string]float64) error {
	rates := maps.Clone(*sampling)
	if err := json.Unmarshal(data, &rates); err != nil {
		return err
	}
	for name, rate := range rates {
		if rate < 0 || rate > 1 {
			return fmt.Errorf("%s is %v, not 0 … 1", name, rate)
		}
	}
	*sampling = rates
	return nil
}

func decodeLimits(data jsontext.Value, limits *Limits) error {
	if err := json.Unmarshal(data, limits); err != nil {
		return err
	}
	for name, l := range map[string]Limit{"read": limits.Read, "handoff": limits.Handoff, "telemetry": limits.Telemetry} {
		for _, perMinute := range []int{l.Cookie, l.IP, l.Fingerprint} {
			if perMinute < 1 || perMinute > 1_000_000 {
				return fmt.Errorf("%s has a limit of %d, not 1 … 1,000,000", name, perMinute)
			}
		}
	}
	return nil
}

func decodeChallenge(data jsontext.Value, challenge *Challenge) error {
	if err := json.Unmarshal(data, challenge); err != nil {
		return err
	}
	if d := challenge.Difficulty; d < 1 || d > 24 {
		return fmt.Errorf("the difficulty is %d, not 1 … 24", d)
	}
	return nil
}

func decodeBotMode(data jsontext.Value, mode *BotMode) error {
	var read BotMode
	if err := json.Unmarshal(data, &read); err != nil {
		return err
	}
	switch read {
	case BotOff, BotObserve, BotEnforce:
		*mode = read
		return nil
	}
	return fmt.Errorf("%q is not off, observe or enforce", read)
}
