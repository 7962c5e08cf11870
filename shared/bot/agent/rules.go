package agent

import (
	_ "embed"
	"strings"
	"sync"
)

// crawlerList is the list of crawler-user-agents in the format of the command update, which writes
// it.
//
//go:embed data/crawlers.txt
var crawlerList string

// rules holds the searchable list and keywords. Building them takes a fraction of a millisecond, at
// the first classification: most instances of most functions never classify a user agent.
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

// parseListed parses a line of the list, in the format of the command update.
func parseListed(line string) literal {
	anchor, line, _ := strings.Cut(line, "\t")
	n := literal{anchor: anchor[0]}
	var hasName bool
	n.text, line, hasName = strings.Cut(line, "\t")
	n.name, n.followedBy, _ = strings.Cut(line, "\t")
	if !hasName {
		n.name = n.text
	}
	return n
}

// matchTool returns the list entry, the keyword or the contact that identifies a tool, or "".
func (r *rules) matchTool(t agentText) string {
	if name := r.listed.find(t.raw); name != "" {
		return name
	}
	if name := r.keywords.find(t.lower); name != "" {
		return name
	}
	return findContact(t)
}

// Release returns the name and version of the crawler list: "crawler-user-agents 1.60.0". Pure;
// Release never fails and does not build the rules.
func Release() string {
	name, _, _ := strings.Cut(strings.TrimPrefix(crawlerList, "# "), ",")
	return name
}
