package agent

import (
	"strings"
	"testing"
)

// The list is written by a program; this is what the room relies on.
func TestRules_ListIsSearchable(t *testing.T) {
	l := newRules()
	for _, ns := range []*literalSet{&l.listed, &l.keywords, &l.automations} {
		for _, n := range ns.all {
			if len(n.text) < minLiteralLength || n.name == "" || strings.ContainsAny(n.name, "\t \"\\") && n.name != strings.ToLower(n.name) {
				t.Errorf("%+v", n)
			}
		}
	}
	for _, n := range l.listed.all {
		if l.automations.find(strings.ToLower(n.text)) != "" {
			t.Errorf("%q is a driver, and weighs as a tool", n.text)
		}
	}
	for _, w := range append(toolKeywords, automationKeywords...) {
		if w != strings.ToLower(w) {
			t.Errorf("%q is never found: agents are searched in lower case", w)
		}
	}
}

func TestLiteralSet_RespectsAnchors(t *testing.T) {
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
		if got := ns.find(in); got != want {
			t.Errorf("%q in %q, want %q", got, in, want)
		}
	}
}

func BenchmarkNewRules(b *testing.B) {
	for b.Loop() {
		newRules()
	}
}
