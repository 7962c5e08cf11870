package main

import (
	"bytes"
	"errors"
	"fmt"
	"regexp/syntax"
	"slices"
	"strings"
	"unicode"
)

// excludedPatterns are patterns of the release that also match people's clients or are keywords of
// package agent, with the reason.
var excludedPatterns = map[string]string{
	"HeadlessChrome": driverReason,
	"PhantomJS":      driverReason,
	"Playwright":     driverReason,
	"Puppeteer":      driverReason,
	"Selenium":       driverReason,
	"Viber":          "the messenger's in-app browser has the same name as its link previews",
}

const driverReason = "a mark of an automation driver, which package agent detects by its own keywords"

// compact returns the list with a literal per line; the service then needs no regular expressions:
//
//	ANCHOR TAB LITERAL [TAB NAME [TAB REST]]
//
// ANCHOR is = anywhere, ^ at the beginning, or $ at the end. NAME is the name of a match, if it
// differs from LITERAL. REST must occur anywhere after LITERAL. The few patterns that are more than
// texts become wider in this form, never narrower. compact returns an error for a pattern without
// such a form.
func compact(found release) ([]byte, error) {
	var lines []string
	for _, e := range found.entries {
		if _, ok := excludedPatterns[e.Pattern]; ok {
			continue
		}
		parsed, err := syntax.Parse(e.Pattern, syntax.Perl)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", e.Pattern, err)
		}
		rest := ""
		literals, ok := expand(parsed)
		if !ok {
			if literals, rest, err = widen(parsed); err != nil {
				return nil, fmt.Errorf("%s: %w", e.Pattern, err)
			}
		}
		name := patternName(literals)
		for _, l := range literals {
			line := l.anchor + "\t" + l.text
			switch {
			case rest != "":
				line += "\t" + name + "\t" + rest
			case name != l.text:
				line += "\t" + name
			}
			if len(l.text) < 3 || strings.ContainsAny(l.text+name+rest, "\t\n") {
				return nil, fmt.Errorf("%s: %q has no form in the list", e.Pattern, l.text)
			}
			lines = append(lines, line)
		}
	}
	slices.Sort(lines)
	var out bytes.Buffer
	fmt.Fprintf(&out, "# crawler-user-agents %s, MIT (LICENSE): %d patterns. Written by update; see there for the form.\n",
		found.version, len(found.entries))
	for _, line := range slices.Compact(lines) {
		out.WriteString(line + "\n")
	}
	return out.Bytes(), nil
}

// literal is a text and its anchor.
type literal struct{ anchor, text string }

const maxLiterals = 16 // literals of one pattern

// expand returns the literals that a pattern matches, or false if it matches more than maxLiterals
// texts.
func expand(re *syntax.Regexp) ([]literal, bool) {
	switch re.Op {
	case syntax.OpLiteral:
		return caseVariants(string(re.Rune), re.Flags&syntax.FoldCase != 0)
	case syntax.OpCharClass:
		var out []literal
		for i := 0; i < len(re.Rune); i += 2 {
			for r := re.Rune[i]; r <= re.Rune[i+1]; r++ {
				if out = append(out, literal{"=", string(r)}); len(out) > maxLiterals {
					return nil, false
				}
			}
		}
		return out, true
	case syntax.OpBeginText, syntax.OpBeginLine:
		return []literal{{"^", ""}}, true
	case syntax.OpEndText, syntax.OpEndLine:
		return []literal{{"$", ""}}, true
	case syntax.OpEmptyMatch:
		return []literal{{"=", ""}}, true
	case syntax.OpCapture:
		return expand(re.Sub[0])
	case syntax.OpQuest:
		some, ok := expand(re.Sub[0])
		return append([]literal{{"=", ""}}, some...), ok
	case syntax.OpAlternate:
		var out []literal
		for _, sub := range re.Sub {
			some, ok := expand(sub)
			if out = append(out, some...); !ok || len(out) > maxLiterals {
				return nil, false
			}
		}
		return out, true
	case syntax.OpConcat:
		out := []literal{{"=", ""}}
		for _, sub := range re.Sub {
			some, ok := expand(sub)
			if !ok || len(out)*len(some) > maxLiterals {
				return nil, false
			}
			var longer []literal
			for _, a := range out {
				for _, b := range some {
					longer = append(longer, a.concat(b))
				}
			}
			out = longer
		}
		return out, !slices.Contains(out, literal{})
	default:
		return nil, false
	}
}

// caseVariants returns a text or, with fold, the text in all mixtures of case: the parser turns
// [wW] into a w with the flag FoldCase.
func caseVariants(text string, fold bool) ([]literal, bool) {
	out := []literal{{"=", ""}}
	for _, r := range text {
		either := []rune{r}
		if fold {
			either = []rune{unicode.ToLower(r), unicode.ToUpper(r)}
		}
		var longer []literal
		for _, l := range out {
			for _, r := range slices.Compact(either) {
				longer = append(longer, literal{"=", l.text + string(r)})
			}
		}
		if out = longer; len(out) > maxLiterals {
			return nil, false
		}
	}
	return out, true
}

// concat appends b to a, and returns the zero literal if an anchor would be inside the text.
func (a literal) concat(b literal) literal {
	switch {
	case b.anchor == "=" && a.anchor != "$":
		return literal{a.anchor, a.text + b.text}
	case a == literal{"=", ""}:
		return b
	case b.anchor == "$" && a.anchor == "=" && b.text == "":
		return literal{"$", a.text}
	default:
		return literal{}
	}
}

// widen returns the one or two texts of a pattern and drops the remaining parts.
func widen(re *syntax.Regexp) (first []literal, rest string, err error) {
	if re.Op != syntax.OpConcat {
		return nil, "", errors.New("neither a text nor a concatenation of texts and other parts")
	}
	var texts []string
	for _, sub := range re.Sub {
		some, ok := expand(sub)
		if ok && slices.ContainsFunc(some, func(l literal) bool { return l.anchor != "=" }) {
			return nil, "", errors.New("an anchor in a concatenation of texts and other parts")
		}
		if ok && len(some) == 1 && len(some[0].text) > 2 {
			texts = append(texts, some[0].text)
		}
	}
	if len(texts) == 0 || len(texts) > 2 || len(strings.Join(texts, "")) < 8 {
		return nil, "", fmt.Errorf("too wide, or too many texts: %q", texts)
	}
	if len(texts) == 2 {
		rest = texts[1]
	}
	return []literal{{"=", texts[0]}}, rest, nil
}

// patternName returns the name of a pattern's matches: its first literal, at most 40 bytes, without
// characters that only a pattern needs.
func patternName(literals []literal) string {
	clean := strings.Map(func(r rune) rune {
		if r > ' ' && r < 0x7f && !strings.ContainsRune(`()[]{};,"'\`, r) {
			return r
		}
		return '-'
	}, strings.TrimSpace(literals[0].text))
	return strings.Trim(clean[:min(len(clean), 40)], "-/")
}
