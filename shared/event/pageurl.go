package event

import (
	"net/url"
	"strings"
)

// These patterns are also those of the schemas; a test compares them.
var (
	refererPattern = lazyRegexp(`^https://([a-z0-9-]{1,63}\.){1,8}[a-z]{2,63}(/[A-Za-z0-9_-]{1,64}){0,8}/?$`)
	pathPattern    = lazyRegexp(`^/([A-Za-z0-9_-]{1,64}(/[A-Za-z0-9_-]{1,64}){0,7}/?)?$`)
	wordPattern    = lazyRegexp(`^[a-z]+(-[a-z]+){0,3}$`)
	namePattern    = lazyRegexp(`^[a-z][A-Za-z]{0,31}$`)
)

const (
	maxURLLength  = 2_048 // bytes of a URL or path that are looked at
	maxSegments   = 8
	maxWordLength = 32  // characters
	redacted      = "_" // stands for a part of a path that could be what somebody typed
)

// SanitizeReferer reduces where a guest came from to the part that may be kept: https, host and path, without user, port,
// query and fragment, and the path only up to the first part that is not a plain word of a URL. What is not an https
// URL of a named host is "".
func SanitizeReferer(s string) string {
	if len(s) > maxURLLength {
		return ""
	}
	u, err := url.Parse(s)
	if err != nil || u.Scheme != "https" {
		return ""
	}
	kept := "https://" + strings.ToLower(u.Hostname())
	for i, segment := range strings.Split(strings.TrimPrefix(u.EscapedPath(), "/"), "/") {
		if i == maxSegments || !pathPattern().MatchString("/"+segment) || segment == "" {
			break
		}
		kept += "/" + segment
	}
	if !refererPattern().MatchString(kept) {
		return ""
	}
	return kept
}

// SanitizePath reduces the path of a page to what may be kept: without query and fragment, at most eight parts, and "_" for
// each that is not a plain word of a URL. It fails for what is not the path of a page at all.
func SanitizePath(s string) (kept string, ok bool) {
	s, _, _ = strings.Cut(s, "#")
	s, _, _ = strings.Cut(s, "?")
	if len(s) > maxURLLength || !strings.HasPrefix(s, "/") || strings.Contains(s, "//") || strings.ContainsFunc(s, isUnprintable) {
		return "", false
	}
	parts := strings.Split(strings.TrimSuffix(s[1:], "/"), "/")
	parts = parts[:min(len(parts), maxSegments)]
	for i, part := range parts {
		if !pathPattern().MatchString("/" + part) {
			parts[i] = redacted
		}
	}
	return "/" + strings.Join(parts, "/"), true
}

func isUnprintable(r rune) bool { return r <= ' ' || r == 0x7f || r == '\\' }

// IsMetadataName says whether a member of a funnel step's metadata may have that name.
func IsMetadataName(s string) bool { return namePattern().MatchString(s) }

// IsMetadataWord says whether a text may be the value of such a member: a lower-case word, or up to four with hyphens.
func IsMetadataWord(s string) bool { return len(s) <= maxWordLength && wordPattern().MatchString(s) }
