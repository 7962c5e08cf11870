package agent

import (
	"bytes"
	"strings"
)

// agentText is a normalized user agent, in original case and in lower case.
type agentText struct{ raw, lower string }

// normalize trims a user agent and cuts it to maxAgentLength. It replaces parts that occur in
// people's user agents but look like programs with blanks: the model of an Android phone, and
// ignoredPhrases.
func normalize(userAgent string) agentText {
	userAgent = userAgent[:min(len(userAgent), maxAgentLength)]
	raw := []byte(strings.Trim(userAgent, " \t\r\n\"'"))
	lower := make([]byte, len(raw))
	for i, c := range raw {
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		lower[i] = c
	}
	blank := func(from, to int) {
		for i := from; i < to; i++ {
			raw[i], lower[i] = ' ', ' '
		}
	}
	blank(modelSpan(lower))
	for _, phrase := range ignoredPhrases {
		for at := 0; ; at += len(phrase) {
			next := bytes.Index(lower[at:], phrase)
			if next < 0 {
				break
			}
			at += next
			blank(at, at+len(phrase))
		}
	}
	return agentText{string(raw), string(lower)}
}

// modelSpan returns the span of the phone model in an Android user agent: (Linux; U; Android 4.4.2;
// en-us; ForwardRuby Build/KOT49H). A model may have any name.
func modelSpan(lower []byte) (from, to int) {
	from = bytes.Index(lower, []byte("android "))
	if from < 0 {
		return 0, 0
	}
	comment := lower[from:]
	if end := bytes.IndexByte(comment, ')'); end >= 0 {
		comment = comment[:end]
	}
	to = bytes.Index(comment, []byte(" build"))
	if to < 0 {
		// Without a build, the model follows the version.
		version := bytes.IndexByte(comment, ';')
		if version < 0 {
			return 0, 0
		}
		if to = bytes.IndexByte(comment[version+1:], ';'); to < 0 {
			to = len(comment)
		} else {
			to += version + 1
		}
	}
	at := bytes.LastIndexByte(comment[:to], ';')
	if at < 0 || bytes.Contains(comment[at:to], []byte("http")) {
		return 0, 0
	}
	return from + at + 1, from + to
}

func isLetter(c byte) bool { return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' }
func isDigit(c byte) bool  { return '0' <= c && c <= '9' }
