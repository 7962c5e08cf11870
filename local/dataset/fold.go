package dataset

import (
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// letterFolding maps letters to a common form: letters of different alphabets of the region for the
// same sound, and letters with an accent that Unicode does not decompose.
var letterFolding = map[rune]string{
	'ي': "ی", 'ى': "ی", 'ې': "ی", 'ۍ': "ی", 'ے': "ی",
	'ك': "ک", 'ڪ': "ک", 'ګ': "گ", 'ڭ': "گ",
	'ة': "ه", 'ہ': "ه", 'ھ': "ه", 'ە': "ه", 'ۀ': "ه", 'ۂ': "ه",
	'ٱ': "ا", 'ټ': "ت", 'ډ': "د", 'ړ': "ر", 'ڼ': "ن",
	'ß': "ss", 'æ': "ae", 'œ': "oe", 'ø': "o", 'ł': "l", 'đ': "d", 'ı': "i", 'ð': "d", 'þ': "th",
}

// Fold returns a name in a form for comparison: lower case, without accents, vowel marks, spaces
// and punctuation, and with one form of each Arabic letter. "Fès", "FES" and "fes" fold to the same
// text, and so do "مكة" and "مکه". Fold is pure.
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

// isDiacritic reports whether Fold drops r: Latin and Cyrillic accents, Arabic vowels and hamza.
// The combining marks of other scripts are vowels and stay.
func isDiacritic(r rune) bool {
	switch {
	case r >= 0x0300 && r <= 0x036F, r >= 0x0610 && r <= 0x061A, r >= 0x064B && r <= 0x065F,
		r == 0x0670, r >= 0x06D6 && r <= 0x06ED:
		return unicode.Is(unicode.M, r) || unicode.Is(unicode.Lm, r)
	}
	return false
}
