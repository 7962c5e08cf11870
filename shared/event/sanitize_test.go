package event

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestFilterKeys_OmitTypedText(t *testing.T) {
	for name, c := range map[string]struct {
		amenities, names []string
		want             []string
	}{
		"none":                         {nil, nil, nil},
		"sorted, once":                 {[]string{"wifi", "halal-kitchen", "wifi"}, []string{"starRating"}, []string{"halal-kitchen", "starRating", "wifi"}},
		"an unknown amenity":           {[]string{"wifi", "ahmad@example.af"}, nil, []string{"amenities", "wifi"}},
		"several unknown are one":      {[]string{"x", "y"}, nil, []string{"amenities"}},
		"case counts":                  {[]string{"WiFi"}, nil, []string{"amenities"}},
		"a filter's name is no code":   {[]string{"neighbourhoods"}, nil, []string{"amenities"}},
		"an unknown filter is not one": {nil, []string{"Shahr-e Naw", "neighbourhoods"}, []string{"neighbourhoods"}},
	} {
		if diff := cmp.Diff(c.want, FilterKeys(c.amenities, c.names...).Keys()); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestFilterKeys_MatchSchema(t *testing.T) {
	p := samples["search.executed.v1"].(SearchExecuted)
	for _, words := range []map[string]bool{amenityCodes, filterNames} {
		for word := range words {
			p.FilterKeys = Filters{[]string{word}}
			if err := Validate(New(Meta{Now: sampleTime}, p)); err != nil {
				t.Errorf("%s: %v", word, err)
			}
		}
	}
}

func TestIsCampaignToken_AcceptsShortPlainTokens(t *testing.T) {
	for s, want := range map[string]bool{
		"google": true, "spring-2026": true, "a": true, "A.b_c-1": true, strings.Repeat("a", 64): true,
		"": false, strings.Repeat("a", 65): false, "-a": false, ".a": false, "a b": false, "a@b.af": false,
		"a\n": false, "کابل": false, "a/b": false, "a%20b": false,
	} {
		if IsCampaignToken(s) != want {
			t.Errorf("%q: %v", s, !want)
		}
	}
}

func TestSanitizePlaceName_DropsEverythingButNames(t *testing.T) {
	for _, name := range []string{
		"Kabul", "کابل", "المدينة المنورة", "Fès", "Хуҷанд", "سی‌وسه‌پل", "10th of Ramadan City", "Sana'a", "Ta’izz",
		"District 9", "ولسوالی ۱۲", "Frankfurt (Oder)", "St. John’s", "日本", strings.Repeat("a", 100),
	} {
		if SanitizePlaceName(name) != name {
			t.Errorf("%q is dropped", name)
		}
	}
	for _, text := range []string{
		"", " ", "a@b.af", "+93701234567", "0701234567", "call 070123", "203.0.113.7", "Kabul\n", "a;b", "<a>", "http://x",
		strings.Repeat("a", 101), strings.Repeat("12a", 40), "\xff", "۱۲۳",
	} {
		if SanitizePlaceName(text) != "" {
			t.Errorf("%q passes", text)
		}
	}
}

func TestEventSchemas_PatternsMatchCode(t *testing.T) {
	defs := asObject(embeddedSchemas(t)["common/v1.json"]["$defs"])
	for name, want := range map[string]string{
		"campaignToken": campaignTokenPattern().String(), "placeName": placeNamePattern().String(), "referer": refererPattern().String(), "path": pathPattern().String(),
	} {
		if got := asObject(defs[name])["pattern"]; got != want {
			t.Errorf("%s: %s in the schema, %s in the code", name, got, want)
		}
	}
}

func TestIsSampled_IsStableNestedAndProportional(t *testing.T) {
	const sessions = 20_000
	counts := map[float64]int{}
	for i := range sessions {
		session := fmt.Sprintf("gms_%026d", i)
		before := false
		for _, rate := range []float64{0.01, 0.1, 0.5} {
			in := IsSampled(session, rate)
			if in != IsSampled(session, rate) {
				t.Fatalf("%s at %v is in and out", session, rate)
			}
			if before && !in {
				t.Fatalf("%s is in below %v and out at it", session, rate)
			}
			if in {
				counts[rate]++
			}
			before = in
		}
		if IsSampled(session, 0) || IsSampled(session, -1) || IsSampled(session, math.NaN()) || !IsSampled(session, 1) || !IsSampled(session, 2) {
			t.Fatalf("%s: the ends are not none and all", session)
		}
	}
	for rate, n := range counts {
		if share := float64(n) / sessions; math.Abs(share-rate) > 0.015 {
			t.Errorf("rate %v took %v", rate, share)
		}
	}
}

// A later version, or another language, must come to the same choice.
func TestIsSampled_MatchesContract(t *testing.T) {
	want := map[string]bool{"0": false, "1": false, "2": false, "3": false, "4": true, "5": false, "6": false, "7": true}
	for last, in := range want {
		if IsSampled("gms_01KPWGB8XKFVZN6H3S0T5QYJ4"+last, 0.5) != in {
			t.Errorf("…%s: %v", last, !in)
		}
	}
}
