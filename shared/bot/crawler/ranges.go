package crawler

import (
	_ "embed"
	"net/netip"
	"slices"
	"strings"
	"sync"
)

// rangeList are the published ranges in the form of the command update, which wrote them: an engine and a prefix a line.
//
//go:embed data/ranges.txt
var rangeList string

// ranges are an engine's prefixes, and which lengths they have: an address is tried with each.
type ranges map[string]*engineRanges

type engineRanges struct {
	prefixes map[netip.Prefix]bool
	lengths  []int
}

// publishedRanges is read at the first claim: most instances never hear one.
var publishedRanges = sync.OnceValue(func() ranges { return parseRanges(rangeList) })

func parseRanges(lines string) ranges {
	all := ranges{}
	for line := range strings.Lines(lines) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		engine, text, _ := strings.Cut(strings.TrimSpace(line), " ")
		p := netip.MustParsePrefix(text) // does not panic: a test reads every line
		of := all[engine]
		if of == nil {
			of = &engineRanges{prefixes: map[netip.Prefix]bool{}}
			all[engine] = of
		}
		of.prefixes[p] = true
		if !slices.Contains(of.lengths, p.Bits()) {
			of.lengths = append(of.lengths, p.Bits())
		}
	}
	return all
}

func (r ranges) contains(engine string, addr netip.Addr) bool {
	of := r[engine]
	if of == nil {
		return false
	}
	for _, bits := range of.lengths {
		if p, err := addr.Prefix(bits); err == nil && of.prefixes[p] { // a length of IPv6 is none of IPv4
			return true
		}
	}
	return false
}
