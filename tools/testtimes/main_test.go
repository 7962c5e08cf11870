package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestReadEvents_PrintsFailuresAndSumsTimes(t *testing.T) {
	t.Parallel()
	const stream = `{"Action":"start","Package":"x/bff-consumer/a"}
{"Action":"output","Package":"x/bff-consumer/a","Test":"TestGood","Output":"noise\n"}
{"Action":"pass","Package":"x/bff-consumer/a","Test":"TestGood","Elapsed":1}
{"Action":"output","Package":"x/bff-consumer/a","Test":"TestBad","Output":"got 1, want 2\n"}
{"Action":"fail","Package":"x/bff-consumer/a","Test":"TestBad","Elapsed":1}
{"Action":"output","Package":"x/bff-consumer/a","Output":"FAIL\tx/bff-consumer/a\t2.5s\n"}
{"Action":"fail","Package":"x/bff-consumer/a","Elapsed":2.5}
compiler says no
{"Action":"output","Package":"x/bff-consumer/b","Output":"PASS\n"}
{"Action":"pass","Package":"x/bff-consumer/b","Elapsed":0.25}
{"Action":"output","Package":"x/bff-consumer/c","Output":"?   \tx/bff-consumer/c\t[no test files]\n"}
{"Action":"skip","Package":"x/bff-consumer/c"}
{"Action":"pass","Package":"x/bff-consumer/d","Elapsed":7}
`
	var out bytes.Buffer
	packages, failed, err := readEvents(strings.NewReader(stream), &out)
	if err != nil || failed != 2 {
		t.Errorf("%d failures, %v; want 2: a test and its package", failed, err)
	}
	if diff := cmp.Diff("got 1, want 2\nFAIL\tx/bff-consumer/a\t2.5s\ncompiler says no\n", out.String()); diff != "" {
		t.Errorf("output (-want +got):\n%s", diff)
	}
	want := "| Package | Seconds |\n|---|---|\n| `d` | 7.0 |\n| `a` | 2.5 |\n| 1 others, less than 1 s each | 0.2 |\n" +
		"| sum; two packages run at a time | 9.8 |\n"
	if diff := cmp.Diff(want, table(packages)); diff != "" {
		t.Errorf("table (-want +got):\n%s", diff)
	}
}

func TestReplaceTable_ReplacesMarkedPlaceOnly(t *testing.T) {
	t.Parallel()
	got, err := replaceTable("before\n<!-- table: seconds per package -->\nold\n<!-- end -->\nafter\n", "new\n")
	if want := "before\n<!-- table: seconds per package -->\nnew\n<!-- end -->\nafter\n"; err != nil || got != want {
		t.Errorf("got %q, %v; want %q", got, err, want)
	}
	if _, err := replaceTable("no table", "new"); err == nil {
		t.Error("a document without the place: no error")
	}
}
