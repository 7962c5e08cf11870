package handoff

import (
	"errors"
	"net/url"
	"strings"
)

// Link is where a tenant's guests book: a URL with {tenantSlug} in it. The zero value is DefaultLink.
type Link struct{ pattern string }

// DefaultLink is the platform's.
const DefaultLink = "https://" + slugPlaceholder + ".melmastoon.ghasi.io/book"

const slugPlaceholder = "{tenantSlug}"

var errInvalidLink = errors.New("handoff: a booking link is an http(s) URL without a query, with {tenantSlug} in it once")

// UnmarshalText lets a configuration hold a Link.
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

// URL is the booking page of a tenant. A slug is a DNS label.
func (l Link) URL(tenantSlug string) string {
	pattern := l.pattern
	if pattern == "" {
		pattern = DefaultLink
	}
	return strings.Replace(pattern, slugPlaceholder, tenantSlug, 1)
}

// URLWithToken is the booking page of a tenant with a token for it, whose characters need no escaping.
func (l Link) URLWithToken(tenantSlug, token string) string { return l.URL(tenantSlug) + "?h=" + token }
