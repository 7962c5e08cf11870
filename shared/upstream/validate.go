package upstream

import (
	"errors"
	"net/netip"
	"net/url"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"melmastoon.ghasi.io/bff-consumer/shared/money"
)

// These checks decide which upstream values may reach a guest. A bad element is dropped from a
// list. A single object with a bad mandatory value is rejected; a bad optional value is cleared.

const (
	maxName        = 200    // code points
	maxText        = 2_000  // code points of a policy, an address, an alternative text
	maxDescription = 10_000 // code points
	maxURL         = 2_048  // bytes
	maxJSON        = 8 << 10
)

var errInvalidMandatory = errors.New("a mandatory value is missing or unusable")

// filter drops the elements rejected by ok, in place. ok may change the element. The result is
// never nil.
func filter[T any](list []T, ok func(*T) bool) []T {
	if list == nil {
		return []T{}
	}
	kept := list[:0]
	for i := range list {
		if ok(&list[i]) {
			kept = append(kept, list[i])
		}
	}
	return kept
}

// newUniqueFilter returns a function that reports whether a key is new.
func newUniqueFilter[K comparable](size int) func(K) bool {
	seen := make(map[K]struct{}, size)
	return func(k K) bool {
		before := len(seen)
		seen[k] = struct{}{}
		return len(seen) > before
	}
}

// validText accepts a visible text on a single line. Direction marks occur in names of the region;
// control characters do not.
func validText(s string, limit int) bool {
	return strings.TrimSpace(s) != "" && validOptionalText(s, limit) && !strings.ContainsAny(s, "\n\t")
}

// validOptionalText accepts any text of several lines, also an empty text.
func validOptionalText(s string, limit int) bool {
	if len(s) > limit && utf8.RuneCountInString(s) > limit { // bytes first: nearly every text is short enough
		return false
	}
	return strings.IndexFunc(s, func(r rune) bool { return unicode.IsControl(r) && r != '\n' && r != '\t' }) < 0
}

// clearInvalid clears an invalid optional text.
func clearInvalid(s *string, limit int) {
	if !validOptionalText(*s, limit) {
		*s = ""
	}
}

// valid reports whether the default text is usable, and removes unusable translations; more than 50
// remaining translations are invalid.
func (l *Localized) valid() bool {
	if !validText(l.Default, maxName) {
		return false
	}
	for tag, text := range l.Localized {
		if !validTag(tag) || !validText(text, maxName) {
			delete(l.Localized, tag)
		}
	}
	return len(l.Localized) <= 50
}

// validTag accepts the shape of a BCP-47 tag, supported or not.
func validTag(s string) bool {
	return len(s) >= 2 && len(s) <= 35 && allBytes(s, func(c byte) bool { return isLetter(c) || isDigit(c) || c == '-' })
}

// validCode accepts a machine-readable code: "wifi", "halal-kitchen", "room_service",
// "asia-south1".
func validCode(s string) bool {
	return s != "" && len(s) <= 64 && allBytes(s, func(c byte) bool { return isLetter(c) || isDigit(c) || c == '-' || c == '_' || c == '.' || c == ':' })
}

// validSlug accepts a DNS label, because the slug becomes the host name of a redirect.
func validSlug(s string) bool {
	return s != "" && len(s) <= 63 && s[0] != '-' && s[len(s)-1] != '-' &&
		allBytes(s, func(c byte) bool { return 'a' <= c && c <= 'z' || isDigit(c) || c == '-' })
}

// validCountry accepts the shape of ISO 3166-1 alpha-2.
func validCountry(s string) bool {
	return len(s) == 2 && allBytes(s, func(c byte) bool { return 'A' <= c && c <= 'Z' })
}

func validColor(s string) bool {
	return len(s) == 7 && s[0] == '#' &&
		allBytes(s[1:], func(c byte) bool { return isDigit(c) || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F' })
}

// validURL accepts https, and http only for a loopback host.
func validURL(s string) bool {
	if len(s) > maxURL || !allBytes(s, func(c byte) bool { return c > ' ' && c < 0x7f && strings.IndexByte("\"'<>\\^`{|}", c) < 0 }) {
		return false
	}
	u, err := url.Parse(s)
	if err != nil || u.User != nil || u.Hostname() == "" {
		return false
	}
	return u.Scheme == "https" || u.Scheme == "http" && isLoopback(u.Hostname())
}

func isLoopback(host string) bool {
	addr, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && addr.IsLoopback()
}

func (i *Image) valid() bool {
	clearInvalid(&i.Alt, maxText)
	return validURL(i.URL)
}

func validStars(v float64) bool { return v > 0 && v <= 5 }

func (r *Rating) valid() bool { return r.Value >= 0 && r.Value <= 10 && r.Count >= 0 }

// validPrice accepts a non-negative amount in a known currency.
func validPrice(amount money.Minor, currency string) bool {
	m, err := money.ParseMinor(string(amount))
	_, known := money.Digits(currency)
	return err == nil && !m.Negative() && known
}

// passthroughJSON returns JSON to pass on uninterpreted; nil for null and for more than 8 KiB.
func passthroughJSON(v jsontext.Value) jsontext.Value {
	if len(v) == 0 || len(v) > maxJSON || v.Kind() == jsontext.KindNull {
		return nil
	}
	return v
}

func allBytes(s string, ok func(byte) bool) bool {
	for i := range len(s) {
		if !ok(s[i]) {
			return false
		}
	}
	return true
}

func isLetter(c byte) bool { return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' }
func isDigit(c byte) bool  { return '0' <= c && c <= '9' }
