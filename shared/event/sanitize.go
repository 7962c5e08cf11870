package event

import (
	"net/netip"
	"regexp"
	"sync"
	"unicode/utf8"
)

// Both patterns are also those of the schemas; a test compares them. They are compiled when they are first needed: a hundred times a
// character class of Unicode is a megabyte, which the start of a process can do without.
var (
	campaignTokenPattern = lazyRegexp(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)
	placeNamePattern     = lazyRegexp("^\\p{Nd}{0,2}\\p{L}(\\p{Nd}{0,2}[\\p{L}\\p{M}\u200c\u200d .,'’‘()/&–-]){0,99}\\p{Nd}{0,2}$")
)

func lazyRegexp(pattern string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(pattern) })
}

// IsCampaignToken reports whether a utm value may be kept: a short token without spaces or signs that
// is not an IP address. Campaign values go out in events, which must not carry free text: an address
// that a mail tool pastes into a link, or a sentence, would stay for a year. Real campaign values are
// tokens by convention. If marketing needs spaces or other scripts, hash the value instead of
// accepting more characters.
func IsCampaignToken(s string) bool {
	_, notAddress := netip.ParseAddr(s)
	return campaignTokenPattern().MatchString(s) && notAddress != nil
}

// SanitizePlaceName passes an upstream's name of a city or region, and drops what is no name ("" then), so that
// an odd one costs the event a field and not its validity. A name has at most two digits in a row: no
// telephone number, address or date is one.
func SanitizePlaceName(s string) string {
	if !placeNamePattern().MatchString(s) || utf8.RuneCountInString(s) > 100 {
		return ""
	}
	return s
}
