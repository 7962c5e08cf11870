package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestCompact_ExpandsPatternsToLiterals(t *testing.T) {
	dir := t.TempDir()
	for name, content := range map[string]string{
		"crawler-user-agents.json": `[
			{"pattern": "Acme\\/", "instances": ["Acme/1"]}, {"pattern": "^[wW]get$"}, {"pattern": "(^| )PT\\/"},
			{"pattern": "Feed[\\s\\S]*reader\\.example"}, {"pattern": "AdsBot-Acme([^-]|$)"}, {"pattern": "HeadlessChrome"},
			{"pattern": "a\\.example|b\\.example"}
		]`,
		"package.json": `{"version": "9.8.7"}`,
		"LICENSE":      "MIT",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	found, err := readRelease(filepath.Join(dir, "crawler-user-agents.json"))
	if err != nil {
		t.Fatal(err)
	}
	_, err = compact(found)
	if err == nil || !strings.Contains(err.Error(), "get$") {
		t.Errorf("both ends at once cannot be written, but: %v", err)
	}
	found.entries[1].Pattern = "^[wW]get"
	got, err := compact(found)
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Join([]string{
		"# crawler-user-agents 9.8.7, MIT (LICENSE): 7 patterns. Written by update; see there for the form.",
		"=\t PT/\tPT", "=\tAcme/\tAcme", "=\tAdsBot-Acme", "=\tFeed\tFeed\treader.example",
		"=\ta.example", "=\tb.example\ta.example", "^\tPT/\tPT", "^\tWget\twget", "^\twget", "",
	}, "\n")
	if string(got) != want {
		t.Errorf("%q\nwant\n%q", got, want)
	}
}

func TestCompact_RejectsPatternWithoutLiteral(t *testing.T) {
	for _, pattern := range []string{`.*`, `a+b`, `[a-z]*`, `xy`, `(`, `abc.*def.*ghi`} {
		found := release{}
		found.entries = append(found.entries, struct {
			Pattern string `json:"pattern"`
		}{pattern})
		if got, err := compact(found); err == nil {
			t.Errorf("%s becomes %q", pattern, got)
		}
	}
}

func TestReadRelease_RequiresEveryFile(t *testing.T) {
	if _, err := readRelease(filepath.Join(t.TempDir(), "package.tgz")); err == nil {
		t.Error("a release that is not there was read")
	}
	if err := run(filepath.Join(t.TempDir(), "x.json"), t.TempDir()); err == nil {
		t.Error("nothing was written as a list")
	}
}
