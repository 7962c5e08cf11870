package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestCompact_ExpandsPatternsToLiterals(t *testing.T) {
	t.Parallel()
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
		t.Errorf("a pattern with both anchors: error %v, want one that names the pattern", err)
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
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Error(diff)
	}
}

func TestCompact_RejectsPatternWithoutLiteral(t *testing.T) {
	t.Parallel()
	for _, pattern := range []string{`.*`, `a+b`, `[a-z]*`, `xy`, `(`, `abc.*def.*ghi`} {
		t.Run(pattern, func(t *testing.T) {
			found := release{}
			found.entries = append(found.entries, struct {
				Pattern string `json:"pattern"`
			}{pattern})
			if got, err := compact(found); err == nil {
				t.Errorf("list %q, want an error", got)
			}
		})
	}
}

func TestReadRelease_RequiresEveryFile(t *testing.T) {
	t.Parallel()
	if _, err := readRelease(filepath.Join(t.TempDir(), "package.tgz")); err == nil {
		t.Error("a missing package was read")
	}
	if err := run(filepath.Join(t.TempDir(), "x.json"), t.TempDir()); err == nil {
		t.Error("a missing release was written")
	}
}
