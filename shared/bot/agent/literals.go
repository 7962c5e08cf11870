package agent

import "strings"

// literal is a text to find in a user agent.
type literal struct {
	text, name string
	anchor     byte   // '=' anywhere, '^' at the beginning, '$' at the end
	wordStart  bool   // no letter may precede the text
	wordEnd    bool   // no letter may follow the text
	followedBy string // must occur anywhere after the text
}

// parseKeyword parses a keyword in a subset of regular expressions: ^ is the beginning of the user
// agent, \b a word boundary. bot\b is the end of a word, \bapi\b a whole word.
func parseKeyword(pattern string) literal {
	n := literal{anchor: '='}
	if rest, ok := strings.CutPrefix(pattern, "^"); ok {
		n.anchor, pattern = '^', rest
	}
	n.text, n.wordStart = strings.CutPrefix(pattern, `\b`)
	n.text, n.wordEnd = strings.CutSuffix(n.text, `\b`)
	n.name = strings.Trim(n.text, " ./:;+-")
	return n
}

// matchesAt reports whether a text has the literal at an offset.
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

// literalSet finds any of its literals in one pass over a text. It is a hash table by the first
// three bytes of a literal. A bit filter rules out most offsets of the text before the table is
// read.
type literalSet struct {
	filter  [1 << 10]uint64
	buckets [1 << 12]int16 // by hash: index in all of the last added literal, plus one; 0 for an empty bucket
	all     []literal
	next    []int16 // by index in all: the next literal of the bucket, as in buckets
}

const minLiteralLength = 3

// add adds a literal of at least three bytes.
func (ns *literalSet) add(n literal) {
	slot := hashTrigram(trigram(n.text, 0))
	ns.filter[slot>>6] |= 1 << (slot & 63)
	ns.all = append(ns.all, n)
	ns.next = append(ns.next, ns.buckets[slot>>4])
	ns.buckets[slot>>4] = int16(len(ns.all))
}

// find returns the name of the first literal in a text, or "".
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

// trigram returns the three bytes of s at an offset as a number.
func trigram(s string, at int) uint32 {
	return uint32(s[at]) | uint32(s[at+1])<<8 | uint32(s[at+2])<<16
}

// hashTrigram returns a hash of 16 bits: the bit of the filter. Its upper 12 bits are the bucket.
func hashTrigram(k uint32) uint32 { return k * 0x9e3779b1 >> 16 }
