package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func writeFile(t *testing.T, content string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "list")
	if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

func TestCompile_MergesBothFormats(t *testing.T) {
	t.Parallel()
	got, err := compile("somewhere, CC0.", []string{
		"b=" + writeFile(t, "192.0.3.0/28\n192.0.3.0/24\n\n192.0.3.64/28\n"),
		"a=" + writeFile(t, `{"creationTime": "x", "prefixes": [{"ipv6Prefix": "2001:4860:4801:2::/64"}, {"ipv4Prefix": "192.0.3.0/28"}]}`),
	})
	want := "# somewhere, CC0. Written by update; see there for the form.\na 192.0.3.0/28\na 2001:4860:4801:2::/64\nb 192.0.3.0/24\n"
	if diff := cmp.Diff(want, string(got)); err != nil || diff != "" {
		t.Error(err, diff)
	}
}

func TestCompile_RejectsInvalidPrefixes(t *testing.T) {
	t.Parallel()
	for content, want := range map[string]string{
		"66.0.0.0/8": "too wide", "2001:4860::/32": "too wide", "10.0.0.0/24": "public", "127.0.0.0/24": "public", "66.249.64.1/24": "beyond",
		"66.249.64.0": "no '/'", "": "no prefix", `{"prefixes": []}`: "no prefix", `{`: "unexpected", `{"prefixes": [{}]}`: "no '/'",
	} {
		t.Run(content, func(t *testing.T) {
			if got, err := compile("x", []string{"a=" + writeFile(t, content)}); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("list %q, error %v; want an error with %q", got, err, want)
			}
		})
	}
	for _, arg := range []string{"a", "a=/nowhere/at/all"} {
		t.Run(arg, func(t *testing.T) {
			if _, err := compile("x", []string{arg}); err == nil {
				t.Error("no error")
			}
		})
	}
}
