package agent

import (
	"strings"
	"testing"
)

// The command update writes the list. These are the properties that the search needs.
func TestRules_ListIsSearchable(t *testing.T) {
	t.Parallel()
	l := newRules()
	for _, ns := range []*literalSet{&l.listed, &l.keywords, &l.automations} {
		for _, n := range ns.all {
			if len(n.text) < minLiteralLength || n.name == "" || strings.ContainsAny(n.name, "\t \"\\") && n.name != strings.ToLower(n.name) {
				t.Errorf("%+v: too short, or a name that no event may carry", n)
			}
		}
	}
	for _, n := range l.listed.all {
		if l.automations.find(strings.ToLower(n.text)) != "" {
			t.Errorf("%q is the mark of a driver but has the weight of a tool", n.text)
		}
	}
	for _, w := range append(toolKeywords, automationKeywords...) {
		if w != strings.ToLower(w) {
			t.Errorf("keyword %q is never found: user agents are searched in lower case", w)
		}
	}
}

func TestLiteralSet_RespectsAnchors(t *testing.T) {
	t.Parallel()
	var ns literalSet
	for _, n := range []literal{parseKeyword(`bot\b`), parseKeyword(`\bapi\b`), parseKeyword(`^java`), {text: "end", name: "end", anchor: '$'},
		{text: "first", name: "first", anchor: '=', followedBy: "second"}} {
		ns.add(n)
	}
	for in, want := range map[string]string{
		"robot": "bot", "bots": "", "bot/1": "bot", "botany bot": "bot", "rapid": "", "an api": "api", "api2": "api", "apis": "",
		"java/1": "java", "a java": "", "the end": "end", "end.": "", "": "", "bo": "",
		"first then second": "first", "second first": "",
	} {
		t.Run(in, func(t *testing.T) {
			if got := ns.find(in); got != want {
				t.Errorf("found %q, want %q", got, want)
			}
		})
	}
}

func BenchmarkNewRules(b *testing.B) {
	for b.Loop() {
		newRules()
	}
}
