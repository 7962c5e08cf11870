// Package flags reads the settings that an operator changes without a deployment: the flags
// document, its defaults and its sources. A read never waits for the network, never fails and
// always returns values.
package flags

import (
	"errors"
	"fmt"
	"maps"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Values is the complete flags document: absent fields have their defaults. All requests share one
// value, so callers must not modify it.
type Values struct {
	// lists are cached for 5 minutes, and handoffs have lower limits
	CampaignMode bool `json:"campaignMode"`
	// share of sessions, 0 … 1, by event subject ("search.executed"); see SamplingRate
	Sampling      map[string]float64 `json:"sampling"`
	LimitsEnabled bool               `json:"limitsEnabled"` // false switches rate limiting off
	Limits        Limits             `json:"limits"`
	BotMode       BotMode            `json:"botMode"`
	Challenge     Challenge          `json:"challenge"`
}

// Limits holds the rate limits of each class of routes.
type Limits struct {
	Read      Limit `json:"read"`
	Handoff   Limit `json:"handoff"`
	Telemetry Limit `json:"telemetry"`
}

// Limit is a rate limit in requests per minute, 1 … 1,000,000, for each bucket of a client.
type Limit struct {
	Cookie      int `json:"cookie"`
	IP          int `json:"ip"`
	Fingerprint int `json:"fingerprint"`
}

// Challenge configures the challenge for suspected bots.
type Challenge struct {
	Difficulty int `json:"difficulty"` // of a puzzle, in leading zero bits, 1 … 24: each bit doubles the work
}

// BotMode is the effect of bot verdicts.
type BotMode string

// The bot modes.
const (
	BotOff     BotMode = "off"     // requests are not scored
	BotObserve BotMode = "observe" // verdicts are recorded and have no effect
	BotEnforce BotMode = "enforce" // suspects are challenged, bots are blocked
)

// Defaults returns a new Values with the defaults, the meaning of an empty document. It never
// fails; the caller may modify the result.
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

// SamplingRate returns the share of sessions, 0 … 1, that emit an event subject
// ("search.executed"). The rate of a subject without a setting is 1. v must not be nil. It never
// fails; CPU only.
func (v *Values) SamplingRate(subject string) float64 {
	if rate, ok := v.Sampling[subject]; ok {
		return rate
	}
	return 1
}

// Parse reads a flags document in JSON. An absent field gets its default, and an unknown field is
// ignored. A null or invalid field keeps its value of last, or its default if last is nil; the
// valid fields apply, and the error names every invalid field. A document that is not a JSON object
// keeps all values: the result is last itself. The returned values are never nil, with or without
// an error. Parse does not modify last, but the result may share its map. CPU and memory only.
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

// merge sets each field from its JSON, from the defaults if the field is absent, or from last if
// its JSON is invalid.
func merge(fields map[string]jsontext.Value, last *Values) (*Values, error) {
	next := Defaults()
	var invalid []error
	for _, f := range []struct {
		name     string
		decode   func(data jsontext.Value) error
		keepLast func()
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
		if data.Kind() != 'n' { // json would decode null to false or to zero values without an error
			err = f.decode(data)
		}
		if err != nil {
			invalid = append(invalid, fmt.Errorf("flags: read %s: %w", f.name, err))
			f.keepLast()
		}
	}
	return next, errors.Join(invalid...)
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
	var decoded BotMode
	if err := json.Unmarshal(data, &decoded); err != nil {
		return err
	}
	switch decoded {
	case BotOff, BotObserve, BotEnforce:
		*mode = decoded
		return nil
	}
	return fmt.Errorf("%q is not off, observe or enforce", decoded)
}
