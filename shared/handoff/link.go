package handoff

import (
	"errors"
	"net/url"
	"strings"
)

// Link is the URL pattern of tenants' booking pages. It contains {tenantSlug} once. The zero value
// is DefaultLink. It is safe for concurrent use after configuration.
type Link struct{ pattern string }

// DefaultLink is the pattern of the platform.
const DefaultLink = "https://" + slugPlaceholder + ".melmastoon.ghasi.io/book"

const slugPlaceholder = "{tenantSlug}"

var errInvalidLink = errors.New("handoff: a booking link must be an http(s) URL without a query that contains {tenantSlug} once")

// UnmarshalText implements encoding.TextUnmarshaler, for configuration structs. It accepts an http
// or https URL without user, query and fragment that contains {tenantSlug} once. For any other
// text, also an empty one, it returns an error without the text and leaves l unchanged. No I/O.
func (l *Link) UnmarshalText(text []byte) error {
	pattern := string(text)
	u, err := url.Parse(strings.Replace(pattern, slugPlaceholder, "slug", 1))
	if err != nil || strings.Count(pattern, slugPlaceholder) != 1 || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" ||
		u.User != nil || strings.ContainsAny(pattern, "?#") {
		return errInvalidLink
	}
	l.pattern = pattern
	return nil
}

// URL returns the URL of a tenant's booking page. tenantSlug must be a DNS label; URL neither
// checks nor escapes it. CPU only; never fails.
func (l Link) URL(tenantSlug string) string {
	pattern := l.pattern
	if pattern == "" {
		pattern = DefaultLink
	}
	return strings.Replace(pattern, slugPlaceholder, tenantSlug, 1)
}

// URLWithToken returns the URL of a tenant's booking page with a handoff token in the query
// parameter h. The characters of a token need no escaping; neither argument is checked. CPU only;
// never fails.
func (l Link) URLWithToken(tenantSlug, token string) string { return l.URL(tenantSlug) + "?h=" + token }
