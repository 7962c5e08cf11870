package event

import (
	"net/netip"
	"regexp"
	"sync"
	"unicode/utf8"
)

// The schemas contain the same patterns; a test compares them. The first use compiles a pattern: a
// Unicode character class repeated a hundred times takes a megabyte, too much for a cold start.
var (
	campaignTokenPattern = lazyRegexp(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)
	placeNamePattern     = lazyRegexp("^\\p{Nd}{0,2}\\p{L}(\\p{Nd}{0,2}[\\p{L}\\p{M}\u200c\u200d .,'’‘()/&–-]){0,99}\\p{Nd}{0,2}$")
)

func lazyRegexp(pattern string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(pattern) })
}

// IsCampaignToken reports whether a utm value may be stored: 1 to 64 ASCII letters, digits, ".",
// "_" or "-", not starting with a sign, and not an IP address. Events publish campaign values and
// must not carry free text: an e-mail address that a mail tool pastes into a link, or a sentence,
// would be kept for a year. Real campaign values are tokens by convention. If marketing needs
// spaces or other scripts, hash the value instead of accepting more characters. The first call
// compiles the pattern, and concurrent callers wait for it. IsCampaignToken never fails; CPU only.
// Safe for concurrent use.
func IsCampaignToken(s string) bool {
	_, notAddress := netip.ParseAddr(s)
	return campaignTokenPattern().MatchString(s) && notAddress != nil
}

// SanitizePlaceName returns an upstream's name of a city or region unchanged, or "" if s does not
// look like a name: the event then lacks one field but stays valid. A name has at most 100
// characters and two digits in a row, which excludes telephone numbers, street addresses and dates.
// The first call compiles the pattern into about a megabyte, and concurrent callers wait for it.
// SanitizePlaceName does no I/O and never fails. Safe for concurrent use.
func SanitizePlaceName(s string) string {
	if !placeNamePattern().MatchString(s) || utf8.RuneCountInString(s) > 100 {
		return ""
	}
	return s
}
