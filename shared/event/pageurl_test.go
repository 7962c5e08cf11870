package event

import (
	"strings"
	"testing"
)

func TestSanitizeReferer_KeepsHostAndPlainPath(t *testing.T) {
	for given, want := range map[string]string{
		"https://www.melmastoon.ghasi.io/search?city=kabul#top": "https://www.melmastoon.ghasi.io/search",
		"https://Example.COM":                                   "https://example.com",
		"https://user:secret@example.com:8443/a/b?token=x":      "https://example.com/a/b",
		"https://example.com/":                                  "https://example.com",
		"https://example.com/inbox/ahmad@example.af/2":          "https://example.com/inbox",
		"https://example.com/a%20b/c":                           "https://example.com",
		"https://example.com/a//b":                              "https://example.com/a",
		"https://example.com/1/2/3/4/5/6/7/8/9":                 "https://example.com/1/2/3/4/5/6/7/8",
		"http://example.com/a":                                  "",
		"https://203.0.113.7/a":                                 "",
		"https://[2001:db8::7]/":                                "",
		"https://localhost/":                                    "",
		"https://exa mple.com/":                                 "",
		"javascript:alert(1)":                                   "",
		"android-app://com.google.android.gm/":                  "",
		"//example.com/":                                        "",
		"":                                                      "",
		"https://" + strings.Repeat("a", maxURLLength) + ".com": "",
		"https://xn--mgba3a4f16a.ir/\u0645":                     "https://xn--mgba3a4f16a.ir",
		"https://example.com/" + strings.Repeat("a", 65):        "https://example.com",
		"https://example.com/ok/" + strings.Repeat("a", 64) + "?a=b#c=d": "https://example.com/ok/" + strings.Repeat("a", 64),
	} {
		if got := SanitizeReferer(given); got != want {
			t.Errorf("%q is kept as %q, want %q", given, got, want)
		}
	}
}

func TestSanitizePath_KeepsPlainSegments(t *testing.T) {
	for given, want := range map[string]string{
		"/":                          "/",
		"/search?city=Kabul&q=ahmad": "/search",
		"/search#results":            "/search",
		"/hotels/ppt_01KPWGB8XKFVZN6H3S0T5QYJ4G/": "/hotels/ppt_01KPWGB8XKFVZN6H3S0T5QYJ4G",
		"/fa/کابل/hotels":                         "/fa/_/hotels",
		"/u/ahmad@example.af":                     "/u/_",
		"/a/b/c/d/e/f/g/h/i":                      "/a/b/c/d/e/f/g/h",
		"/" + strings.Repeat("x", 65):             "/_",
		"/index.html":                             "/_",
	} {
		got, ok := SanitizePath(given)
		if !ok || got != want || !pathPattern().MatchString(got) {
			t.Errorf("%q is kept as %q, want %q", given, got, want)
		}
	}
	for _, given := range []string{"", "search", "//evil.example/", "/a//b", "https://example.com/", "/a b", "/a\n", "\\a", "/\\a", "/" + strings.Repeat("x", maxURLLength)} {
		if got, ok := SanitizePath(given); ok {
			t.Errorf("%q is kept as %q", given, got)
		}
	}
}

func TestIsMetadataWord_AcceptsOnlyPlainNamesAndWords(t *testing.T) {
	for _, s := range []string{"filter-panel", "a", "one-two-three-four"} {
		if !IsMetadataWord(s) {
			t.Errorf("%q is no word", s)
		}
	}
	for _, s := range []string{"", "Ahmad", "a b", "a1", "one-two-three-four-five", "-a", "a@b", strings.Repeat("a", 33)} {
		if IsMetadataWord(s) {
			t.Errorf("%q is a word", s)
		}
	}
	if !IsMetadataName("resultCount") || IsMetadataName("Result") || IsMetadataName("a_b") || IsMetadataName("") || IsMetadataName(strings.Repeat("a", 33)) {
		t.Error("names")
	}
}
