// Command testtimes reads the output of `go test -json`, prints the text that `go test` would
// print, and writes the seconds per package into a document. `./dev test --times` runs it.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"melmastoon.ghasi.io/bff-consumer/tools/internal/command"
)

const usage = `usage: go test -json … | testtimes --write FILE

Prints a line per package and the output of failed tests, and replaces the text between
"<!-- table: seconds per package -->" and "<!-- end -->" in FILE. Exit status 1: a test failed.
`

func main() { command.Main("testtimes", run) }

func run(_ context.Context, args []string) error {
	set := command.NewFlags(usage)
	path := set.String("write", "", "")
	if err := set.Parse(args); err != nil {
		return err
	}
	if *path == "" || set.NArg() > 0 {
		return set.Wrong("name one document with --write")
	}
	packages, failed, err := readEvents(os.Stdin, os.Stdout)
	if err != nil {
		return err
	}
	text, err := os.ReadFile(*path)
	if err != nil {
		return err
	}
	written, err := replaceTable(string(text), table(packages))
	if err == nil {
		err = os.WriteFile(*path, []byte(written), 0o644)
	}
	if err == nil && failed > 0 {
		err = fmt.Errorf("%d packages or tests failed", failed)
	}
	return err
}

// packageTime is the time of the tests of one package.
type packageTime struct {
	path    string
	seconds float64
}

// event is one line of `go test -json`.
type event struct {
	Action, Package, Test, Output string
	Elapsed                       float64
}

// readEvents reads a stream of events until its end. It writes the output of packages and of failed
// tests to out, and returns the packages with tests, slowest first, and the number of failed tests
// and packages. A line without JSON, such as a compiler error, goes to out unchanged.
func readEvents(in io.Reader, out io.Writer) (packages []packageTime, failed int, err error) {
	output := map[string]*strings.Builder{} // of each running test
	lines := bufio.NewReader(in)
	for {
		line, err := lines.ReadString('\n')
		if line == "" && err == io.EOF {
			break
		}
		if err != nil && err != io.EOF {
			return nil, 0, err
		}
		var e event
		if json.Unmarshal([]byte(line), &e) != nil {
			fmt.Fprint(out, line)
			continue
		}
		name := e.Package + " " + e.Test
		switch e.Action {
		case "output", "build-output":
			switch {
			case e.Test != "":
				if output[name] == nil {
					output[name] = &strings.Builder{}
				}
				output[name].WriteString(e.Output)
			case !strings.Contains(e.Output, "[no test files]") && e.Output != "PASS\n":
				fmt.Fprint(out, e.Output)
			}
		case "fail":
			failed++
			if o := output[name]; o != nil {
				fmt.Fprint(out, o)
			}
			fallthrough
		case "pass":
			delete(output, name)
			if e.Test == "" {
				packages = append(packages, packageTime{e.Package, e.Elapsed})
			}
		case "skip":
			delete(output, name)
		}
	}
	slices.SortStableFunc(packages, func(a, b packageTime) int { return int(10*b.seconds) - int(10*a.seconds) })
	return packages, failed, nil
}

// restBelow is the time in seconds below which packages share a row of the table.
const restBelow = 1

// table returns the times as a Markdown table.
func table(packages []packageTime) string {
	var b strings.Builder
	b.WriteString("| Package | Seconds |\n|---|---|\n")
	rest, sum, total := 0, 0.0, 0.0
	for _, p := range packages {
		total += p.seconds
		if p.seconds < restBelow {
			rest++
			sum += p.seconds
			continue
		}
		_, short, _ := strings.Cut(p.path, "/bff-consumer/")
		fmt.Fprintf(&b, "| `%s` | %.1f |\n", short, p.seconds)
	}
	fmt.Fprintf(&b, "| %d others, less than %d s each | %.1f |\n| sum; two packages run at a time | %.1f |\n", rest, restBelow, sum, total)
	return b.String()
}

// replaceTable replaces the table in a document. A document without the two marks is an error.
func replaceTable(text, table string) (string, error) {
	const begin, end = "<!-- table: seconds per package -->\n", "<!-- end -->"
	before, rest, found := strings.Cut(text, begin)
	_, after, closed := strings.Cut(rest, end)
	if !found || !closed {
		return "", fmt.Errorf("the document has no %q and %q", strings.TrimSpace(begin), end)
	}
	return before + begin + table + end + after, nil
}
