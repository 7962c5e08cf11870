package main

import (
	"strings"
	"testing"
)

func TestParseArgs_TakesFlagsAroundOneFolder(t *testing.T) {
	t.Parallel()
	o, err := parseArgs(strings.Fields("--root /r --out a search --built b"))
	if err != nil || o.Root != "/r" || o.Function != "search" || o.OutDir != "a" || o.BuildDir != "b" {
		t.Errorf("parseArgs = %+v, %v; want folder search, root /r, out a, built b", o, err)
	}
	for _, wrong := range []string{"", "a b", "--out", "--colour all"} {
		if o, err := parseArgs(strings.Fields(wrong)); err == nil {
			t.Errorf("parseArgs(%q) = %+v, want an error", wrong, o)
		}
	}
}
