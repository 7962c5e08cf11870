package crawler

import (
	_ "embed"
	"net/netip"
	"slices"
	"strings"
	"sync"
)

// rangeList has the published ranges, one engine and prefix per line. The command update writes it.
//
//go:embed data/ranges.txt
var rangeList string

// ranges holds the published ranges by engine.
type ranges map[string]*engineRanges

// engineRanges holds the prefixes of an engine and their lengths. contains tries each length.
type engineRanges struct {
	prefixes map[netip.Prefix]bool
	lengths  []int
}

// publishedRanges parses the list at the first claim: most instances never get a claim.
var publishedRanges = sync.OnceValue(func() ranges { return parseRanges(rangeList) })

func parseRanges(lines string) ranges {
	all := ranges{}
	for line := range strings.Lines(lines) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		engine, text, _ := strings.Cut(strings.TrimSpace(line), " ")
		p := netip.MustParsePrefix(text) // unreachable panic: a test parses every line
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

// contains reports whether an address is in a published range of an engine.
func (r ranges) contains(engine string, addr netip.Addr) bool {
	of := r[engine]
	if of == nil {
		return false
	}
	for _, bits := range of.lengths {
		// err: an IPv6 length for an IPv4 address
		if p, err := addr.Prefix(bits); err == nil && of.prefixes[p] {
			return true
		}
	}
	return false
}
