package agent

import "strings"

// needle is a text to find in a user agent.
type needle struct {
	text, name string
	anchor     byte   // '=' anywhere, '^' at the beginning, '$' at the end
	left       bool   // no letter may stand before it
	right      bool   // no letter may stand behind it
	rest       string // must stand somewhere behind it
}

// word is a needle written as in a regular expression: bot\b ends a word, \bapi\b is one.
func word(pattern string) needle {
	n := needle{anchor: '='}
	if begin, ok := strings.CutPrefix(pattern, "^"); ok {
		n.anchor, pattern = '^', begin
	}
	n.text, n.left = strings.CutPrefix(pattern, `\b`)
	n.text, n.right = strings.CutSuffix(n.text, `\b`)
	n.name = strings.Trim(n.text, " ./:;+-")
	return n
}

func (n *needle) stands(in string, at int) bool {
	end := at + len(n.text)
	switch {
	case !strings.HasPrefix(in[at:], n.text):
		return false
	case n.left && at > 0 && letter(in[at-1]), n.right && end < len(in) && letter(in[end]):
		return false
	}
	switch n.anchor {
	case '^':
		return at == 0
	case '$':
		return end == len(in)
	default:
		return n.rest == "" || strings.Contains(in[end:], n.rest)
	}
}

// needles finds any of many texts in one walk. Each is filed under its first three bytes: a small filter says for
// most places that nothing begins there, and chains hold what may.
type needles struct {
	filter [1 << 10]uint64
	heads  [1 << 12]int16 // by spread, one more than the place in all of the newest that is filed there
	all    []needle
	next   []int16 // the one filed before it
}

const shortest = 3

func (ns *needles) add(n needle) {
	slot := spread(key(n.text, 0))
	ns.filter[slot>>6] |= 1 << (slot & 63)
	ns.all = append(ns.all, n)
	ns.next = append(ns.next, ns.heads[slot>>4])
	ns.heads[slot>>4] = int16(len(ns.all))
}

// find is the name of the first needle that stands in the text, or nothing.
func (ns *needles) find(in string) string {
	for at := 0; at+shortest <= len(in); at++ {
		slot := spread(key(in, at))
		if ns.filter[slot>>6]&(1<<(slot&63)) == 0 {
			continue
		}
		for i := ns.heads[slot>>4]; i > 0; i = ns.next[i-1] {
			if n := &ns.all[i-1]; n.stands(in, at) {
				return n.name
			}
		}
	}
	return ""
}

func key(s string, at int) uint32 {
	return uint32(s[at]) | uint32(s[at+1])<<8 | uint32(s[at+2])<<16
}

// spread is 16 bits: a slot of the filter, and its first 12 a chain.
func spread(k uint32) uint32 { return k * 0x9e3779b1 >> 16 }
