package flags

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const document = `{"campaignMode": false,
 "sampling": {"search.executed": 0.1},
 "limitsEnabled": true,
 "limits": {"read": {"cookie": 120, "ip": 1200, "fingerprint": 600},
            "handoff": {"cookie": 10, "ip": 120, "fingerprint": 60},
            "telemetry": {"cookie": 240, "ip": 2400, "fingerprint": 1200}},
 "botMode": "enforce"}`

func TestDefaults_MatchDecisions(t *testing.T) {
	t.Parallel()
	for _, doc := range []string{document, `{}`} {
		t.Run(doc, func(t *testing.T) {
			v, err := Parse([]byte(doc), nil)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(Defaults(), v); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestValues_JSONRoundTrip(t *testing.T) {
	t.Parallel()
	want := nonDefaultValues()
	data, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	got, err := Parse(data, nil)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// nonDefaultValues returns values that differ from the defaults in every field.
func nonDefaultValues() *Values {
	return &Values{
		CampaignMode: true,
		Sampling:     map[string]float64{"search.executed": 0.25, "page.viewed": 0},
		Limits:       Limits{Limit{1, 2, 3}, Limit{4, 5, 6}, Limit{7, 8, 9}},
		BotMode:      BotObserve,
		Challenge:    Challenge{Difficulty: 9},
	}
}

func TestParse_FillsAbsentValuesWithDefaults(t *testing.T) {
	t.Parallel()
	v, err := Parse([]byte(`{"sampling": {"page.viewed": 0.5}, "limits": {"read": {"ip": 7}}, "colour": "red"}`), nonDefaultValues())
	if err != nil {
		t.Fatal(err)
	}
	want := Defaults()
	want.Sampling["page.viewed"] = 0.5
	want.Limits.Read.IP = 7
	if diff := cmp.Diff(want, v); diff != "" {
		t.Error(diff)
	}
}

func TestParse_BadFieldKeepsLastValueAndIsNamed(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ doc, want string }{
		"string for boolean":    {`{"campaignMode": "yes"}`, "read campaignMode"},
		"null":                  {`{"campaignMode": null}`, "read campaignMode"},
		"number for boolean":    {`{"limitsEnabled": 1}`, "read limitsEnabled"},
		"rate over one":         {`{"sampling": {"search.executed": 10}}`, "read sampling"},
		"rate below zero":       {`{"sampling": {"search.executed": -0.1}}`, "read sampling"},
		"string for rate":       {`{"sampling": {"search.executed": "0.1"}}`, "read sampling"},
		"limit of zero":         {`{"limits": {"read": {"cookie": 0}}}`, "read limits"},
		"fractional limit":      {`{"limits": {"read": {"cookie": 1.5}}}`, "read limits"},
		"array for limits":      {`{"limits": [120]}`, "read limits"},
		"unknown mode":          {`{"botMode": "panic"}`, "read botMode"},
		"boolean for mode":      {`{"botMode": true}`, "read botMode"},
		"difficulty of zero":    {`{"challenge": {"difficulty": 0}}`, "read challenge"},
		"difficulty over 24":    {`{"challenge": {"difficulty": 25}}`, "read challenge"},
		"string for difficulty": {`{"challenge": {"difficulty": "16"}}`, "read challenge"},
	} {
		t.Run(name, func(t *testing.T) {
			last := nonDefaultValues()
			v, err := Parse([]byte(c.doc), last)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("error %v, want %s", err, c.want)
			}
			want := Defaults()
			switch c.want {
			case "read campaignMode":
				want.CampaignMode = last.CampaignMode
			case "read limitsEnabled":
				want.LimitsEnabled = last.LimitsEnabled
			case "read sampling":
				want.Sampling = last.Sampling
			case "read limits":
				want.Limits = last.Limits
			case "read botMode":
				want.BotMode = last.BotMode
			case "read challenge":
				want.Challenge = last.Challenge
			}
			if diff := cmp.Diff(want, v); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestParse_BadFieldDoesNotAffectOthers(t *testing.T) {
	t.Parallel()
	v, err := Parse([]byte(`{"campaignMode": true, "botMode": 3, "limits": 4}`), nil)
	if err == nil || !strings.Contains(err.Error(), "botMode") || !strings.Contains(err.Error(), "limits") {
		t.Errorf("error %v, want one that names botMode and limits", err)
	}
	if !v.CampaignMode || v.BotMode != BotEnforce {
		t.Errorf("%+v, want campaign mode and the bot mode enforce", v)
	}
}

func TestParse_InvalidDocumentKeepsAllValues(t *testing.T) {
	t.Parallel()
	for _, doc := range []string{``, `{"campaignMode": tru`, `[]`, `{"botMode":"off","botMode":"off"}`} {
		t.Run(doc, func(t *testing.T) {
			last := nonDefaultValues()
			v, err := Parse([]byte(doc), last)
			if err == nil || v != last {
				t.Errorf("values %+v, error %v; want the last values and an error", v, err)
			}
		})
	}
}

func TestParse_NeverMutatesSharedValues(t *testing.T) {
	t.Parallel()
	last := nonDefaultValues()
	if _, err := Parse([]byte(`{"sampling": {"search.executed": 1, "x": 9}}`), last); err == nil {
		t.Fatal("no error for the rate 9")
	}
	if diff := cmp.Diff(nonDefaultValues(), last); diff != "" {
		t.Error(diff)
	}
}

func TestSamplingRate_DefaultsToOne(t *testing.T) {
	t.Parallel()
	v := Defaults()
	if v.SamplingRate("search.executed") != 0.1 || v.SamplingRate("session.started") != 1 {
		t.Errorf("rates %v and %v, want 0.1 and 1", v.SamplingRate("search.executed"), v.SamplingRate("session.started"))
	}
}
