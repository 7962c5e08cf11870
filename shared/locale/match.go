package locale

import (
	"slices"
	"strings"
	"sync"

	"golang.org/x/text/language"
)

// Limits for a hostile header: 2,000 languages would take the matcher most of a millisecond.
const (
	maxHeader  = 512 // bytes
	maxEntries = 16
)

var dari = language.MustParse("fa-AF")

// matcher is built on first use: matchFirstEntry handles nearly every request, and a cold start
// should be fast.
var matcher = sync.OnceValue(func() language.Matcher { return language.NewMatcher(languageTags()) })

// languageTags returns the supported tags as language.Tag, in the same order.
func languageTags() []language.Tag {
	list := make([]language.Tag, len(supported))
	for i, t := range supported {
		list[i] = language.MustParse(string(t))
	}
	return list
}

// Match returns the best supported tag for an Accept-Language header by CLDR distance; (Default,
// false) without a close match and for an empty header. It ignores malformed entries, entries with
// weight 0, all bytes after 512 and all usable entries after 16. It does no I/O and never fails.
// Safe for concurrent use: most headers of browsers take no lock; the first of the other headers
// builds the CLDR matcher, once per process, and concurrent callers wait for the matcher.
func Match(acceptLanguage string) (Tag, bool) {
	if len(acceptLanguage) > maxHeader {
		acceptLanguage = acceptLanguage[:maxHeader]
		acceptLanguage = acceptLanguage[:max(strings.LastIndexByte(acceptLanguage, ','), 0)]
	}
	entry, _, _ := strings.Cut(acceptLanguage, ",")
	if t, ok := matchFirstEntry(entry); ok {
		return t, true
	}
	wanted := parseAcceptLanguage(acceptLanguage)
	if len(wanted) == 0 {
		return Default, false
	}
	// The returned tag may have extensions (fa-AF-u-rg-irzzzz), so use the index.
	_, i, confidence := matcher().Match(wanted...)
	if confidence == language.No {
		return Default, false
	}
	return supported[i], true
}

// matchFirstEntry matches a first entry without a weight, such as "en-US", if the language has a
// single supported form: no later entry can match better. Nearly every browser's request then skips
// the parser and the matcher; a test compares the results with those of the matcher.
func matchFirstEntry(entry string) (Tag, bool) {
	base, region, hasRegion := strings.Cut(entry, "-")
	if hasRegion && (len(region) != 2 || !isUpper(region[0]) || !isUpper(region[1])) {
		return "", false
	}
	switch base {
	case "en", "ar", "ru", "fr":
		return Tag(base), true
	case "ps":
		return "ps-AF", true
	case "ur":
		return "ur-PK", true
	case "fa", "tg": // the region decides about dialect or script
		if t, err := Parse(entry); err == nil {
			return t, true
		}
	}
	return "", false
}

func isUpper(c byte) bool { return 'A' <= c && c <= 'Z' }

// parseAcceptLanguage returns the languages of the header by descending weight.
func parseAcceptLanguage(header string) []language.Tag {
	type choice struct {
		tag    language.Tag
		weight float32
	}
	choices := make([]choice, 0, maxEntries)
	for entry := range strings.SplitSeq(header, ",") {
		// Entry by entry: a malformed entry would otherwise make the whole header an error.
		tags, weights, err := language.ParseAcceptLanguage(entry)
		if err != nil || len(tags) != 1 || weights[0] <= 0 {
			continue
		}
		tag := tags[0]
		if base, _ := tag.Base(); base.String() == "prs" { // the matcher does not know prs as Dari
			tag = dari
		}
		if choices = append(choices, choice{tag, weights[0]}); len(choices) == maxEntries {
			break
		}
	}
	slices.SortStableFunc(choices, func(a, b choice) int {
		switch {
		case a.weight > b.weight:
			return -1
		case a.weight < b.weight:
			return 1
		}
		return 0
	})
	wanted := make([]language.Tag, len(choices))
	for i, c := range choices {
		wanted[i] = c.tag
	}
	return wanted
}
