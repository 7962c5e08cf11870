// Command update rewrites the address ranges of package crawler:
//
//	go run ./bot/crawler/update SOURCE ENGINE=FILE…     in shared/
//
// SOURCE is one line that names the source of the files and its licence. ENGINE is a value of
// agent.Classification.Crawler. FILE is a list of CIDR prefixes, one per line, or the JSON document
// that the engine publishes:
//
//	googlebot=googlebot.json    developers.google.com/static/search/apis/ipranges/googlebot.json, and special-crawlers.json
//	bingbot=bingbot.json        www.bing.com/toolbox/bingbot.json
//	duckduckbot=duckduckbot.json    duckduckgo.com/duckduckbot.json
//
// Do not add Google's lists of user-triggered fetchers: any user can trigger fetches. Neither the
// command nor the service downloads a list.
package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

func main() {
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, "usage: go run ./bot/crawler/update SOURCE ENGINE=FILE…")
		os.Exit(2)
	}
	list, err := compile(os.Args[1], os.Args[2:])
	if err == nil {
		err = os.WriteFile(filepath.Join("bot", "crawler", "data", "ranges.txt"), list, 0o644)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "update:", err)
		os.Exit(1)
	}
}

// rangeLine is a line of the list.
type rangeLine struct {
	engine string
	prefix netip.Prefix
}

// compile returns the sorted list of the prefixes of all files. A prefix inside another prefix of
// the same engine is omitted.
func compile(source string, files []string) ([]byte, error) {
	var all []rangeLine
	for _, arg := range files {
		engine, file, ok := strings.Cut(arg, "=")
		if !ok {
			return nil, fmt.Errorf("%q is not ENGINE=FILE", arg)
		}
		content, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		found, err := readPrefixes(content)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		for _, p := range found {
			all = append(all, rangeLine{engine, p})
		}
	}
	slices.SortFunc(all, func(a, b rangeLine) int {
		return cmp.Or(strings.Compare(a.engine, b.engine), a.prefix.Addr().Compare(b.prefix.Addr()), a.prefix.Bits()-b.prefix.Bits())
	})
	var out bytes.Buffer
	fmt.Fprintf(&out, "# %s. Written by update; see there for the form.\n", strings.TrimRight(source, "."))
	var last rangeLine
	for _, l := range all {
		if l.engine == last.engine && last.prefix.Overlaps(l.prefix) {
			continue // the wider one comes first
		}
		fmt.Fprintln(&out, l.engine, l.prefix)
		last = l
	}
	return out.Bytes(), nil
}

// readPrefixes returns the prefixes of a file, or an error for a file without prefixes and for a
// prefix that checkPrefix rejects.
func readPrefixes(content []byte) (found []netip.Prefix, err error) {
	words := strings.Fields(string(content))
	if bytes.HasPrefix(bytes.TrimSpace(content), []byte("{")) {
		var published struct {
			Prefixes []struct{ Ipv4Prefix, Ipv6Prefix string }
		}
		if err := json.Unmarshal(content, &published); err != nil {
			return nil, err
		}
		words = nil
		for _, p := range published.Prefixes {
			words = append(words, cmp.Or(p.Ipv4Prefix, p.Ipv6Prefix))
		}
	}
	for _, word := range words {
		p, err := netip.ParsePrefix(word)
		if err != nil {
			return nil, err
		}
		if err := checkPrefix(p); err != nil {
			return nil, fmt.Errorf("%v: %w", p, err)
		}
		found = append(found, p)
	}
	if len(found) == 0 {
		return nil, errors.New("no prefix in the file")
	}
	return found, nil
}

// checkPrefix rejects prefixes that no engine publishes, because one such line by mistake would
// verify every client.
func checkPrefix(p netip.Prefix) error {
	widest := 16
	if p.Addr().Is6() {
		widest = 48
	}
	switch {
	case p != p.Masked():
		return errors.New("has bits beyond its length")
	case p.Bits() < widest:
		return errors.New("is too wide for one crawler")
	case p.Addr().IsPrivate() || p.Addr().IsLoopback() || !p.Addr().IsGlobalUnicast():
		return errors.New("is not on the public network")
	}
	return nil
}
