package locale

import (
	"slices"
	"strings"
	"sync"

	"golang.org/x/text/language"
)

// A hostile header must not cost much: 2,000 languages would take the matcher most of a millisecond.
const (
	maxHeader  = 512 // bytes
	maxEntries = 16
)

var dari = language.MustParse("fa-AF")

// matcher is made when it is first needed: obvious answers nearly every request, the first one included.
var matcher = sync.OnceValue(func() language.Matcher { return language.NewMatcher(languageTags()) })

func languageTags() []language.Tag {
	list := make([]language.Tag, len(supported))
	for i, t := range supported {
		list[i] = language.MustParse(string(t))
	}
	return list
}

// Match returns the best supported tag for an Accept-Language header by the CLDR distances; Default and false when
// nothing is near enough. An entry that is no language is passed over.
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
	// The tag that comes back may have grown extensions (fa-AF-u-rg-irzzzz); the index is ours.
	_, i, confidence := matcher().Match(wanted...)
	if confidence == language.No {
		return Default, false
	}
	return supported[i], true
}

// matchFirstEntry answers for a first entry without a weight in a language that we have in one form only, as "en-US": nothing
// that follows can beat it. It spares nearly every browser's request the parser and the matcher; a test holds it to
// their answers.
func matchFirstEntry(entry string) (Tag, bool) {
	base, region, regional := strings.Cut(entry, "-")
	if regional && (len(region) != 2 || !isUpper(region[0]) || !isUpper(region[1])) {
		return "", false
	}
	switch base {
	case "en", "ar", "ru", "fr":
		return Tag(base), true
	case "ps":
		return "ps-AF", true
	case "ur":
		return "ur-PK", true
	case "fa", "tg": // elsewhere the region says something about the dialect or the script
		if t, err := Parse(entry); err == nil {
			return t, true
		}
	}
	return "", false
}

func isUpper(c byte) bool { return 'A' <= c && c <= 'Z' }

// parseAcceptLanguage returns the languages of the header, the most wanted first.
func parseAcceptLanguage(header string) []language.Tag {
	type choice struct {
		tag    language.Tag
		weight float32
	}
	choices := make([]choice, 0, maxEntries)
	for entry := range strings.SplitSeq(header, ",") {
		// One at a time: a single odd entry would otherwise make the whole header an error.
		tags, weights, err := language.ParseAcceptLanguage(entry)
		if err != nil || len(tags) != 1 || weights[0] <= 0 {
			continue
		}
		tag := tags[0]
		if base, _ := tag.Base(); base.String() == "prs" { // the matcher does not know that this is Dari
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
