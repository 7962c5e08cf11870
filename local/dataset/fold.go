package dataset

import (
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// letterFolding maps letters that one sound is written with in different alphabets of the region, or that have
// an accent which does not decompose, to one of them.
var letterFolding = map[rune]string{
	'ي': "ی", 'ى': "ی", 'ې': "ی", 'ۍ': "ی", 'ے': "ی",
	'ك': "ک", 'ڪ': "ک", 'ګ': "گ", 'ڭ': "گ",
	'ة': "ه", 'ہ': "ه", 'ھ': "ه", 'ە': "ه", 'ۀ': "ه", 'ۂ': "ه",
	'ٱ': "ا", 'ټ': "ت", 'ډ': "د", 'ړ': "ر", 'ڼ': "ن",
	'ß': "ss", 'æ': "ae", 'œ': "oe", 'ø': "o", 'ł': "l", 'đ': "d", 'ı': "i", 'ð': "d", 'þ': "th",
}

// Fold reduces a name to what people mean by it: no case, accents, vowel marks, spaces or punctuation, and one
// form of each Arabic letter. "Fès", "FES" and "fes" fold to the same text, and so do "مكة" and "مکه".
func Fold(s string) string {
	var b strings.Builder
	b.Grow(len(s))
	for _, r := range norm.NFKD.String(s) {
		if isDiacritic(r) || !unicode.In(r, unicode.L, unicode.M, unicode.N) || r == 'ـ' {
			continue
		}
		r = unicode.ToLower(r)
		if to, ok := letterFolding[r]; ok {
			b.WriteString(to)
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}

// isDiacritic reports the marks that may be left out of a name: Latin and Cyrillic accents, Arabic vowels and hamza.
// The marks of other scripts are their vowels and stay.
func isDiacritic(r rune) bool {
	switch {
	case r >= 0x0300 && r <= 0x036F, r >= 0x0610 && r <= 0x061A, r >= 0x064B && r <= 0x065F,
		r == 0x0670, r >= 0x06D6 && r <= 0x06ED:
		return unicode.Is(unicode.M, r) || unicode.Is(unicode.Lm, r)
	}
	return false
}
