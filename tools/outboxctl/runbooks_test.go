package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	sqlBlock = regexp.MustCompile("(?ms)^```sql\n(.*?)^```")
	comment  = regexp.MustCompile(`(?m)--.*$`)
	devVerb  = regexp.MustCompile("\\./dev ([a-z]+)( [a-z]+)?")
)

// The person on call pastes these statements and commands.
func TestRunbooks_StatementsAndCommandsAreValid(t *testing.T) {
	t.Parallel()
	d := newHarness(t)
	files, err := filepath.Glob("../../docs/runbooks/*.md")
	if err != nil || len(files) == 0 {
		t.Fatal("no runbooks", err)
	}
	script, err := os.ReadFile("../../dev")
	if err != nil {
		t.Fatal(err)
	}
	statements := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, block := range sqlBlock.FindAllSubmatch(text, -1) {
			for statement := range strings.SplitSeq(comment.ReplaceAllString(string(block[1]), ""), ";") {
				if statement = strings.TrimSpace(statement); statement == "" {
					continue
				}
				statements++
				if _, err := d.db.Exec(t.Context(), "EXPLAIN "+statement); err != nil {
					t.Errorf("%s: %v\n%s", filepath.Base(file), err, statement)
				}
			}
		}
		for _, verb := range devVerb.FindAllSubmatch(text, -1) {
			if !regexp.MustCompile(`(?m)^` + string(verb[1]) + ` *\|`).Match(script) {
				t.Errorf("%s: ./dev has no verb %q", filepath.Base(file), verb[1])
			}
			if string(verb[1]) == "outbox" && len(verb[2]) > 0 && !strings.Contains(usage, "./dev outbox"+string(verb[2])) {
				t.Errorf("%s: ./dev outbox has no verb%s", filepath.Base(file), verb[2])
			}
		}
	}
	if statements == 0 {
		t.Error("no runbook has an SQL statement")
	}
}
