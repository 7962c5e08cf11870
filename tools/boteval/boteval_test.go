package main

import (
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const (
	chrome   = `Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/147.0.0.0 Safari/537.36`
	headless = `Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) HeadlessChrome/147.0.0.0 Safari/537.36`
)

func writeFile(t *testing.T, name string, lines ...string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	content := []byte(strings.Join(lines, "\n") + "\n")
	if strings.HasSuffix(name, ".gz") {
		var packed bytes.Buffer
		w := gzip.NewWriter(&packed)
		if _, err := w.Write(content); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		content = packed.Bytes()
	}
	if err := os.WriteFile(file, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// smallLists returns lists of two or three rows.
func smallLists(t *testing.T) options {
	return options{
		Bots: []string{writeFile(t, "b.jsonl", `{"ua":"curl/8","src":["monperrus","isbot"]}`, `{"ua":"`+headless+`","src":["isbot"]}`,
			`{"ua":"`+chrome+`","src":["isbot"],"disputed":true}`)},
		Humans: []string{writeFile(t, "h.jsonl.gz", `{"ua":"`+chrome+`","w":0.75}`, ``, `{"ua":"Acme hotel list","w":0.25}`)},
		Headers: []string{writeFile(t, "s.jsonl", `{"headers":{"user-agent":"`+chrome+`","Accept":"*/*","accept-language":"fa"}}`,
			`{"headers":{"User-Agent":"`+headless+`","Accept":"*/*"}}`)},
	}
}

func TestEvaluate_JSONReportsCounts(t *testing.T) {
	t.Parallel()
	o, out := smallLists(t), &bytes.Buffer{}
	o.JSON, o.Out = true, out
	if err := evaluate(o); err != nil {
		t.Fatal(err)
	}
	want := `{"lists":[{"file":"` + o.Bots[0] + `","kind":"bots","rows":3,"flagged":1},` +
		`{"file":"` + o.Humans[0] + `","kind":"humans","rows":2,"flagged":1},` +
		`{"file":"` + o.Headers[0] + `","kind":"headers","rows":2,"flagged":1}]}` + "\n"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("counts (-want +got):\n%s", diff)
	}
}

func TestEvaluate_TextReportsSignals(t *testing.T) {
	t.Parallel()
	o, out := smallLists(t), &bytes.Buffer{}
	o.Out, o.Rows = out, true
	if err := evaluate(o); err != nil {
		t.Fatal(err)
	}
	text := strings.Join(strings.Fields(out.String()), " ")
	for _, want := range []string{
		"b.jsonl bots 3 1 33.33 % 1 of 2, 50.00 %", "h.jsonl.gz humans 2 1 50.00 % 25.000 %", "s.jsonl headers 2 1 50.00 %",
		"source of the patterns (monperrus: crawler-user-agents 1.60.0) 1 1 100.00 %", "only by other sources 2 0 0.00 %",
		"header-anomaly: no-accept-language 0 0 1", "ua-pattern: automation 1 0 1", "tool not-a-browser Acme hotel list",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the report lacks %q:\n%s", want, out)
		}
	}
}

func TestReplay_OrdersByTime(t *testing.T) {
	t.Parallel()
	line := func(second, target, ua, label string) string {
		return `{"client":"c1","t":"17/May/2015:10:05:` + second + ` +0000","req":"GET ` + target + ` HTTP/1.1","ua":"` + ua + `","label":"` + label + `"}`
	}
	lines := []string{line("59", "/", chrome, "unlabelled"), line("03", "/", "curl/8", "bot")}
	for range 11 { // together with the page at second 59 a burst of 12, but assets do not count
		lines = append(lines, line("07", "/a.png?x=1", chrome, "unlabelled"))
	}
	for range 12 {
		lines = append(lines, line("08", "/page", headless, "robots-txt"))
	}
	out := &bytes.Buffer{}
	if err := evaluate(options{Log: writeFile(t, "log.jsonl.gz", lines...), Out: out}); err != nil {
		t.Fatal(err)
	}
	text := strings.Join(strings.Fields(out.String()), " ")
	for _, want := range []string{"bot 1 1 0 0 0 0 1 0", "robots-txt 1 0 1 1 1 0 1 1", "unlabelled 1 0 0 0 0 0 0 0"} {
		if !strings.Contains(text, want) {
			t.Errorf("the report lacks %q:\n%s", want, out)
		}
	}
}

func TestEvaluate_ErrorNamesFileAndLine(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]options{
		"x.jsonl:2":      {Bots: []string{writeFile(t, "x.jsonl", `{"ua":"a"}`, `{`)}},
		"y.jsonl:1":      {Headers: []string{writeFile(t, "y.jsonl", `{"ua":"a"}`)}},
		"z.jsonl:1":      {Log: writeFile(t, "z.jsonl", `{"t":"noon"}`)},
		"does not exist": {Root: "/nowhere/at-all"},
	} {
		o.Out = io.Discard
		if err := evaluate(o); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("error %v, want one with %q", err, name)
		}
	}
}

func TestParseArgs_ReadsFlagsAndRejectsInvalid(t *testing.T) {
	t.Parallel()
	got, err := parseArgs(strings.Fields("--root /r --bots a b --humans=c d -headers e --json --bots f --log l --rows"))
	want := options{Root: "/r", Bots: []string{"a", "b", "f"}, Humans: []string{"c", "d"}, Headers: []string{"e"}, Log: "l", JSON: true, Rows: true}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	for _, wrong := range []string{"--bots", "--log a b", "x", "--what", "--json x", "--root"} {
		if o, err := parseArgs(strings.Fields(wrong)); err == nil {
			t.Errorf("parseArgs(%q) = %+v, want an error", wrong, o)
		}
	}
}

// The test needs the reference data beside the repository and skips without them.
func TestEvaluateList_MeetsRecallAndFalsePositiveTargets(t *testing.T) {
	t.Parallel()
	o := options{Root: filepath.Join("..", "..")}
	if err := o.setDefaults(); err != nil {
		t.Skip(err)
	}
	measure := func(file, kind string) *result {
		r, err := evaluateList(file, kind)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	if r := measure(o.Bots[0], kindBots); r.flagged*100 < r.rows*97 || r.notInPatternSource.flagged*100 < r.notInPatternSource.rows*95 {
		t.Errorf("recall is %d of %d, want 97 %%; %d of %d without the source of the patterns, want 95 %%", r.flagged, r.rows, r.notInPatternSource.flagged, r.notInPatternSource.rows)
	}
	if r := measure(o.Humans[0], kindHumans); r.flagged*1000 > r.rows {
		t.Errorf("%d of %d people are flagged, want at most 0.1 %%:\n%s", r.flagged, r.rows, strings.Join(r.misclassified, "\n"))
	}
	for _, r := range []*result{measure(o.Humans[1], kindHumans), measure(o.Headers[0], kindHeaders)} {
		if r.flagged > 0 || len(r.scores) != 1 {
			t.Errorf("%s: scores %v, want only 0:\n%s", r.file, r.scores, strings.Join(r.misclassified, "\n"))
		}
	}
}
