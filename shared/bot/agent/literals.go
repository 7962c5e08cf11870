package agent

import "strings"

// literal is a text to find in a user agent.
type literal struct {
	text, name string
	anchor     byte   // '=' anywhere, '^' at the beginning, '$' at the end
	wordStart  bool   // no letter may stand before it
	wordEnd    bool   // no letter may stand behind it
	followedBy string // must stand somewhere behind it
}

// parseKeyword is a needle written as in a regular expression: bot\b ends a word, \bapi\b is one.
func parseKeyword(pattern string) literal {
	n := literal{anchor: '='}
	if begin, ok := strings.CutPrefix(pattern, "^"); ok {
		n.anchor, pattern = '^', begin
	}
	n.text, n.wordStart = strings.CutPrefix(pattern, `\b`)
	n.text, n.wordEnd = strings.CutSuffix(n.text, `\b`)
	n.name = strings.Trim(n.text, " ./:;+-")
	return n
}

func (n *literal) matchesAt(in string, at int) bool {
	end := at + len(n.text)
	switch {
	case !strings.HasPrefix(in[at:], n.text):
		return false
	case n.wordStart && at > 0 && isLetter(in[at-1]), n.wordEnd && end < len(in) && isLetter(in[end]):
		return false
	}
	switch n.anchor {
	case '^':
		return at == 0
	case '$':
		return end == len(in)
	default:
		return n.followedBy == "" || strings.Contains(in[end:], n.followedBy)
	}
}

// literalSet finds any of many texts in one walk. Each is filed under its first three bytes: a small filter says for
// most places that nothing begins there, and chains hold what may.
type literalSet struct {
	filter  [1 << 10]uint64
	buckets [1 << 12]int16 // by spread, one more than the place in all of the newest that is filed there
	all     []literal
	next    []int16 // the one filed before it
}

const minLiteralLength = 3

func (ns *literalSet) add(n literal) {
	slot := hashTrigram(trigram(n.text, 0))
	ns.filter[slot>>6] |= 1 << (slot & 63)
	ns.all = append(ns.all, n)
	ns.next = append(ns.next, ns.buckets[slot>>4])
	ns.buckets[slot>>4] = int16(len(ns.all))
}

// find is the name of the first needle that stands in the text, or nothing.
func (ns *literalSet) find(in string) string {
	for at := 0; at+minLiteralLength <= len(in); at++ {
		slot := hashTrigram(trigram(in, at))
		if ns.filter[slot>>6]&(1<<(slot&63)) == 0 {
			continue
		}
		for i := ns.buckets[slot>>4]; i > 0; i = ns.next[i-1] {
			if n := &ns.all[i-1]; n.matchesAt(in, at) {
				return n.name
			}
		}
	}
	return ""
}

func trigram(s string, at int) uint32 {
	return uint32(s[at]) | uint32(s[at+1])<<8 | uint32(s[at+2])<<16
}

// hashTrigram is 16 bits: a slot of the filter, and its first 12 a chain.
func hashTrigram(k uint32) uint32 { return k * 0x9e3779b1 >> 16 }
