package main

import (
	"strings"
	"testing"
)

func TestParseArgs_SeparatesColdStartFromBenchmarks(t *testing.T) {
	t.Parallel()
	o, coldStart, err := parseArgs(strings.Fields("--root /r coldstart --starts 3 --only search,detail"))
	if err != nil || !coldStart || o.Root != "/r" || o.Starts != 3 || o.Only != "search,detail" {
		t.Errorf("parseArgs = %+v, %t, %v; want coldstart of search and detail, 3 starts, root /r", o, coldStart, err)
	}
	for _, wrong := range []string{"coldstart --starts 0", "--only search", "now", "--rounds"} {
		if o, _, err := parseArgs(strings.Fields(wrong)); err == nil {
			t.Errorf("parseArgs(%q) = %+v, want an error", wrong, o)
		}
	}
}
