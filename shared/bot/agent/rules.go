package agent

import (
	_ "embed"
	"strings"
	"sync"
)

// crawlerList is the list of crawler-user-agents in the form of the command update, which wrote it.
//
//go:embed data/crawlers.txt
var crawlerList string

// rules are the list and the words, made ready. That takes a fraction of a millisecond, at the first judgement
// rather than at start-up: most instances of most functions never judge anybody.
type rules struct {
	listed, keywords, automations literalSet
}

var loadedRules = sync.OnceValue(newRules)

func newRules() *rules {
	r := &rules{}
	r.listed.all, r.listed.next = make([]literal, 0, 2048), make([]int16, 0, 2048)
	for _, w := range automationKeywords {
		r.automations.add(parseKeyword(w))
	}
	for _, w := range toolKeywords {
		r.keywords.add(parseKeyword(w))
	}
	for line := range strings.Lines(crawlerList) {
		if line[0] != '#' {
			r.listed.add(parseListed(strings.TrimSuffix(line, "\n")))
		}
	}
	return r
}

// parseListed reads a line of the list, in the form that the command update writes.
func parseListed(line string) literal {
	anchor, line, _ := strings.Cut(line, "\t")
	n := literal{anchor: anchor[0]}
	var named bool
	n.text, line, named = strings.Cut(line, "\t")
	n.name, n.followedBy, _ = strings.Cut(line, "\t")
	if !named {
		n.name = n.text
	}
	return n
}

// matchTool names what declares itself: an entry of the list, a word, or an address to write to.
func (r *rules) matchTool(t agentText) string {
	if name := r.listed.find(t.raw); name != "" {
		return name
	}
	if name := r.keywords.find(t.lower); name != "" {
		return name
	}
	return findContact(t)
}

// Release names the list that the patterns were taken from, and its version.
func Release() string {
	name, _, _ := strings.Cut(strings.TrimPrefix(crawlerList, "# "), ",")
	return name
}
