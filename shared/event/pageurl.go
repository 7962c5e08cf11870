package event

import (
	"net/url"
	"strings"
)

// The schemas contain the same patterns; a test compares them.
var (
	refererPattern = lazyRegexp(`^https://([a-z0-9-]{1,63}\.){1,8}[a-z]{2,63}(/[A-Za-z0-9_-]{1,64}){0,8}/?$`)
	pathPattern    = lazyRegexp(`^/([A-Za-z0-9_-]{1,64}(/[A-Za-z0-9_-]{1,64}){0,7}/?)?$`)
	wordPattern    = lazyRegexp(`^[a-z]+(-[a-z]+){0,3}$`)
	namePattern    = lazyRegexp(`^[a-z][A-Za-z]{0,31}$`)
)

const (
	maxURLLength  = 2_048 // bytes; a longer URL or path is rejected
	maxSegments   = 8
	maxWordLength = 32  // characters
	redacted      = "_" // replaces a path segment that could be typed text
)

// SanitizeReferer removes from a referer URL everything that could identify a guest: it keeps
// https, the host in lower case and the path up to the first segment that is empty, over 64 long,
// or has characters other than ASCII letters, digits, "_" and "-", at most eight segments; user,
// port, query and fragment go. It returns "" for a malformed URL, a URL over 2,048 bytes, without
// https, or without a host of two to nine labels with a top-level domain of ASCII letters, such as
// an IP address. The first call compiles two patterns, and concurrent callers wait for them.
// SanitizeReferer does no I/O and never fails. Safe for concurrent use.
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

// SanitizePath removes query, fragment and a last slash from the path of a page, cuts it to eight
// segments, and replaces each segment with characters other than ASCII letters, digits, "_" and
// "-", or over 64 long, by "_". It returns ("", false) for a path over 2,048 bytes, without a
// leading slash, with "//", spaces, control characters or a backslash. The first call compiles a
// pattern, and concurrent callers wait for it. CPU only; safe for concurrent use.
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

// IsMetadataName reports whether s may name a member of a funnel step's metadata: 1 to 32 ASCII
// letters, the first in lower case. The first call compiles the pattern, and concurrent callers
// wait for it. CPU only.
func IsMetadataName(s string) bool { return namePattern().MatchString(s) }

// IsMetadataWord reports whether s may be a value of a funnel step's metadata: one to four words of
// lower-case ASCII letters with hyphens between, at most 32 characters. The first call compiles the
// pattern, and concurrent callers wait for it. CPU only.
func IsMetadataWord(s string) bool { return len(s) <= maxWordLength && wordPattern().MatchString(s) }
