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

// excludedPatterns are patterns of the list that name things people use, with the reason.
var excludedPatterns = map[string]string{
	"HeadlessChrome": driverReason,
	"PhantomJS":      driverReason,
	"Playwright":     driverReason,
	"Puppeteer":      driverReason,
	"Selenium":       driverReason,
	"Viber":          "the messenger's own browser carries the name as well as its previews",
}

const driverReason = "a mark of whatever drives a browser, which the room weighs by words of its own"

// compact writes one literal a line, so that the service needs no regular expressions:
//
//	ANCHOR TAB LITERAL [TAB NAME [TAB REST]]
//
// ANCHOR is = anywhere, ^ at the beginning, or $ at the end. NAME is what is told of a match, when it is not LITERAL.
// REST is what must stand somewhere behind LITERAL, where a pattern is more than texts: the few that are become wider
// by that, never narrower.
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
				return nil, fmt.Errorf("%s: %q cannot stand in the list", e.Pattern, l.text)
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

// literal is a text and where it must stand.
type literal struct{ anchor, text string }

const maxLiterals = 16 // literals that one pattern may stand for

// expand turns a pattern into the literals that it means, if they are few.
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

// caseVariants are a text, or the text in all mixtures of case: [wW] is parsed as w in either case.
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

// concat is one text behind another. The zero literal says that an anchor would stand where none can.
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

// widen takes the one or two texts out of a pattern that also has something else.
func widen(re *syntax.Regexp) (first []literal, rest string, err error) {
	if re.Op != syntax.OpConcat {
		return nil, "", errors.New("neither a text nor texts with something between")
	}
	var texts []string
	for _, sub := range re.Sub {
		some, ok := expand(sub)
		if ok && slices.ContainsFunc(some, func(l literal) bool { return l.anchor != "=" }) {
			return nil, "", errors.New("texts with something between must not stand at an end")
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

// patternName is what a match is called: a word of the list, free of what only a pattern needs.
func patternName(literals []literal) string {
	clean := strings.Map(func(r rune) rune {
		if r > ' ' && r < 0x7f && !strings.ContainsRune(`()[]{};,"'\`, r) {
			return r
		}
		return '-'
	}, strings.TrimSpace(literals[0].text))
	return strings.Trim(clean[:min(len(clean), 40)], "-/")
}
