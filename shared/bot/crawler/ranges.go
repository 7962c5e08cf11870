package crawler

import (
	_ "embed"
	"net/netip"
	"slices"
	"strings"
	"sync"
)

// prefixes are the published ranges in the form of the command update, which wrote them: an engine and a prefix a line.
//
//go:embed data/ranges.txt
var prefixes string

// ranges are an engine's prefixes, and which lengths they have: an address is tried with each.
type ranges map[string]*engineRanges

type engineRanges struct {
	has     map[netip.Prefix]bool
	lengths []int
}

// published is read at the first claim: most instances never hear one.
var published = sync.OnceValue(func() ranges { return parse(prefixes) })

func parse(lines string) ranges {
	all := ranges{}
	for line := range strings.Lines(lines) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		engine, text, _ := strings.Cut(strings.TrimSpace(line), " ")
		p := netip.MustParsePrefix(text) // does not panic: a test reads every line
		of := all[engine]
		if of == nil {
			of = &engineRanges{has: map[netip.Prefix]bool{}}
			all[engine] = of
		}
		of.has[p] = true
		if !slices.Contains(of.lengths, p.Bits()) {
			of.lengths = append(of.lengths, p.Bits())
		}
	}
	return all
}

func (r ranges) has(engine string, addr netip.Addr) bool {
	of := r[engine]
	if of == nil {
		return false
	}
	for _, bits := range of.lengths {
		if p, err := addr.Prefix(bits); err == nil && of.has[p] { // a length of IPv6 is none of IPv4
			return true
		}
	}
	return false
}
