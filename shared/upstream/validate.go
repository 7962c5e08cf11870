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

// The checks below decide what may reach a guest. A list drops its bad elements; a single thing with a bad mandatory
// value is refused, and with a bad optional one loses that value.

const (
	maxName        = 200    // code points
	maxText        = 2_000  // of a policy, an address, an alternative text
	maxDescription = 10_000 // of a description
	maxURL         = 2_048  // bytes
	maxJSON        = 8 << 10
)

var errInvalidMandatory = errors.New("mandatory part missing or unusable")

// filter drops the elements that are not ok, in place. ok may tidy its element. The result is never nil.
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

// newUniqueFilter is the second half of an ok: it is true the first time it sees a key.
func newUniqueFilter[K comparable](size int) func(K) bool {
	seen := make(map[K]struct{}, size)
	return func(k K) bool {
		before := len(seen)
		seen[k] = struct{}{}
		return len(seen) > before
	}
}

// validText accepts one line that shows something. Direction marks are part of the region's names; control characters
// are part of no name.
func validText(s string, limit int) bool {
	return strings.TrimSpace(s) != "" && validOptionalText(s, limit) && !strings.ContainsAny(s, "\n\t")
}

// validOptionalText accepts any text, also none, over several lines.
func validOptionalText(s string, limit int) bool {
	if len(s) > limit && utf8.RuneCountInString(s) > limit { // bytes first: they are enough for nearly all
		return false
	}
	return strings.IndexFunc(s, func(r rune) bool { return unicode.IsControl(r) && r != '\n' && r != '\t' }) < 0
}

// clearInvalid empties an optional text that may not be shown.
func clearInvalid(s *string, limit int) {
	if !validOptionalText(*s, limit) {
		*s = ""
	}
}

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

// validTag accepts the shape of a BCP-47 tag. Which of them we speak is another question.
func validTag(s string) bool {
	return len(s) >= 2 && len(s) <= 35 && allBytes(s, func(c byte) bool { return isLetter(c) || isDigit(c) || c == '-' })
}

// validCode accepts a machine's word: "wifi", "halal-kitchen", "room_service", "asia-south1".
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

// validURL accepts https, and http on this machine alone.
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

// validPrice accepts an amount that can be asked for and a currency that exists.
func validPrice(amount money.Minor, currency string) bool {
	m, err := money.ParseMinor(string(amount))
	_, known := money.Digits(currency)
	return err == nil && !m.Negative() && known
}

// passthroughJSON is what is passed on unread; null and what is too large are absent.
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
