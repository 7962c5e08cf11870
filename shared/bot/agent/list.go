package agent

import (
	_ "embed"
	"strings"
	"sync"
)

// crawlers is the list of crawler-user-agents in the form of the command update, which wrote it.
//
//go:embed data/crawlers.txt
var crawlers string

// rules are the list and the words, made ready. That takes a fraction of a millisecond, at the first judgement
// rather than at start-up: most instances of most functions never judge anybody.
type rules struct {
	listed, words, automations needles
}

var lists = sync.OnceValue(newRules)

func newRules() *rules {
	r := &rules{}
	r.listed.all, r.listed.next = make([]needle, 0, 2048), make([]int16, 0, 2048)
	for _, w := range automationWords {
		r.automations.add(word(w))
	}
	for _, w := range toolWords {
		r.words.add(word(w))
	}
	for line := range strings.Lines(crawlers) {
		if line[0] != '#' {
			r.listed.add(parse(strings.TrimSuffix(line, "\n")))
		}
	}
	return r
}

// parse reads a line of the list, in the form that the command update writes.
func parse(line string) needle {
	anchor, line, _ := strings.Cut(line, "\t")
	n := needle{anchor: anchor[0]}
	var named bool
	n.text, line, named = strings.Cut(line, "\t")
	n.name, n.rest, _ = strings.Cut(line, "\t")
	if !named {
		n.name = n.text
	}
	return n
}

// tools names what declares itself: an entry of the list, a word, or an address to write to.
func (r *rules) tools(t text) string {
	if name := r.listed.find(t.raw); name != "" {
		return name
	}
	if name := r.words.find(t.lower); name != "" {
		return name
	}
	return contact(t)
}

// Release names the list that the patterns were taken from, and its version.
func Release() string {
	name, _, _ := strings.Cut(strings.TrimPrefix(crawlers, "# "), ",")
	return name
}
