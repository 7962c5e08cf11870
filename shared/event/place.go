package event

import (
	"net/url"
	"strings"
)

// These patterns are also those of the schemas; a test compares them.
var (
	referer = lazily(`^https://([a-z0-9-]{1,63}\.){1,8}[a-z]{2,63}(/[A-Za-z0-9_-]{1,64}){0,8}/?$`)
	path    = lazily(`^/([A-Za-z0-9_-]{1,64}(/[A-Za-z0-9_-]{1,64}){0,7}/?)?$`)
	word    = lazily(`^[a-z]+(-[a-z]+){0,3}$`)
	name    = lazily(`^[a-z][A-Za-z]{0,31}$`)
)

const (
	maxPlace    = 2_048 // bytes of a URL or path that are looked at
	maxSegments = 8
	maxWord     = 32  // characters
	hidden      = "_" // stands for a part of a path that could be what somebody typed
)

// Referer reduces where a guest came from to the part that may be kept: https, host and path, without user, port,
// query and fragment, and the path only up to the first part that is not a plain word of a URL. What is not an https
// URL of a named host is "".
func Referer(s string) string {
	if len(s) > maxPlace {
		return ""
	}
	u, err := url.Parse(s)
	if err != nil || u.Scheme != "https" {
		return ""
	}
	kept := "https://" + strings.ToLower(u.Hostname())
	for i, segment := range strings.Split(strings.TrimPrefix(u.EscapedPath(), "/"), "/") {
		if i == maxSegments || !path().MatchString("/"+segment) || segment == "" {
			break
		}
		kept += "/" + segment
	}
	if !referer().MatchString(kept) {
		return ""
	}
	return kept
}

// Path reduces the path of a page to what may be kept: without query and fragment, at most eight parts, and "_" for
// each that is not a plain word of a URL. It fails for what is not the path of a page at all.
func Path(s string) (kept string, ok bool) {
	s, _, _ = strings.Cut(s, "#")
	s, _, _ = strings.Cut(s, "?")
	if len(s) > maxPlace || !strings.HasPrefix(s, "/") || strings.Contains(s, "//") || strings.ContainsFunc(s, unprintable) {
		return "", false
	}
	parts := strings.Split(strings.TrimSuffix(s[1:], "/"), "/")
	parts = parts[:min(len(parts), maxSegments)]
	for i, part := range parts {
		if !path().MatchString("/" + part) {
			parts[i] = hidden
		}
	}
	return "/" + strings.Join(parts, "/"), true
}

func unprintable(r rune) bool { return r <= ' ' || r == 0x7f || r == '\\' }

// MetadataName says whether a member of a funnel step's metadata may have that name.
func MetadataName(s string) bool { return name().MatchString(s) }

// MetadataWord says whether a text may be the value of such a member: a lower-case word, or up to four with hyphens.
func MetadataWord(s string) bool { return len(s) <= maxWord && word().MatchString(s) }
