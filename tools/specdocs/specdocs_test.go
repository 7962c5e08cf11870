// Package specdocs compares docs/spec with the code. A table between <!-- table: NAME --> and <!--
// end --> is generated from its source: the OpenAPI documents, the error catalogue, the event
// schemas, schema.sql or the default flags. A test fails when a table differs; `go test
// ./tools/specdocs -update` writes the tables. The package has tests only.
package specdocs

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the tables instead of comparing them")

// root is the repository.
const root = "../.."

// table is one generated table of a document.
type table struct {
	file   string // below docs/spec
	name   string
	header []string
	rows   [][]string

	// described means that people write the last column. Rows then have one cell less than the
	// header, and markdown copies the last cell from the document by the row's first cell. A row
	// without text fails the test.
	described bool
}

func TestSpecDocs_TablesMatchTheirSources(t *testing.T) {
	for _, tab := range tables(t) {
		t.Run(tab.file+" "+tab.name, func(t *testing.T) {
			if len(tab.rows) == 0 {
				t.Fatal("the source has no rows")
			}
			path := filepath.Join(root, "docs/spec", tab.file)
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			begin := "<!-- table: " + tab.name + " -->\n"
			before, rest, found := strings.Cut(string(text), begin)
			old, after, closed := strings.Cut(rest, "<!-- end -->")
			if !found || !closed {
				t.Fatalf("%s has no table between %q and <!-- end -->", tab.file, strings.TrimSpace(begin))
			}
			want := tab.markdown(t, old)
			switch {
			case old == want:
			case *update:
				if err := os.WriteFile(path, []byte(before+begin+want+"<!-- end -->"+after), 0o644); err != nil {
					t.Fatal(err)
				}
			default:
				t.Errorf("the table is stale: run `go test ./tools/specdocs -update`\n%s", cmp.Diff(old, want))
			}
		})
	}
}

// markdown returns the table. old is the table in the document, which has the column that people
// write.
func (tab *table) markdown(t *testing.T, old string) string {
	t.Helper()
	texts := map[string]string{}
	for line := range strings.Lines(old) {
		if cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), " | "); len(cells) == len(tab.header) {
			texts[strings.TrimSpace(cells[0])] = strings.TrimSpace(cells[len(cells)-1])
		}
	}
	var b strings.Builder
	line := func(cells []string) { fmt.Fprintf(&b, "| %s |\n", strings.Join(cells, " | ")) }
	line(tab.header)
	fmt.Fprintf(&b, "|%s\n", strings.Repeat("---|", len(tab.header)))
	for _, row := range tab.rows {
		for i := range row {
			row[i] = strings.ReplaceAll(row[i], "|", `\|`)
		}
		if tab.described {
			text := texts[row[0]]
			if text == "" || text == "TODO" {
				text = "TODO"
				t.Errorf("%s: describe %s in the last column", tab.file, row[0])
			}
			row = append(row, text)
		}
		line(row)
	}
	return b.String()
}

// cited finds the names of documents in files, with or without an anchor:
// docs/spec/keys.md#sessions.
var (
	cited    = regexp.MustCompile(`\bdocs/[A-Za-z0-9_/.-]+\.md(#[A-Za-z0-9_-]+)?`)
	linked   = regexp.MustCompile(`\]\(([^)\s:]+\.md)?(#[^)\s]+)?\)`)
	heading  = regexp.MustCompile(`(?m)^#{1,6} +(.+?) *$`)
	fence    = regexp.MustCompile("(?ms)^```.*?^```")
	noAnchor = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// TestSpecDocs_CitationsResolve checks every document and heading that a text file of the
// repository names.
func TestSpecDocs_CitationsResolve(t *testing.T) {
	known := map[string]map[string]bool{}
	resolve := func(file, document, anchor string) {
		path := filepath.Clean(document)
		if known[path] == nil {
			text, err := os.ReadFile(filepath.Join(root, path))
			if err != nil {
				t.Errorf("%s names %s, which does not exist", file, path)
			}
			known[path] = anchors(string(text))
		}
		if anchor != "" && len(known[path]) > 0 && !known[path][anchor] {
			t.Errorf("%s names %s#%s, which has no such heading", file, path, anchor)
		}
	}
	err := filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		file, _ := filepath.Rel(root, path)
		if d.IsDir() {
			switch d.Name() {
			case ".git", ".local", ".terraform", "dist", "third_party", "testdata", "node_modules":
				return filepath.SkipDir
			}
			return nil
		}
		switch filepath.Ext(path) {
		case ".go", ".md", ".sql", ".lua", ".tf", ".tfvars", ".hcl", ".yaml", "":
		default:
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, m := range cited.FindAllString(string(text), -1) {
			document, anchor, _ := strings.Cut(m, "#")
			resolve(file, document, anchor)
		}
		if filepath.Ext(path) == ".md" {
			for _, m := range linked.FindAllStringSubmatch(string(text), -1) {
				if m[1]+m[2] == "" {
					continue
				}
				document := file
				if m[1] != "" {
					document = filepath.Join(filepath.Dir(file), m[1])
				}
				resolve(file, document, strings.TrimPrefix(m[2], "#"))
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// anchors returns the anchors that GitHub gives the headings of a document.
func anchors(text string) map[string]bool {
	found := map[string]bool{}
	for _, m := range heading.FindAllStringSubmatch(fence.ReplaceAllString(text, ""), -1) {
		name := strings.ReplaceAll(strings.ToLower(noAnchor.ReplaceAllString(m[1], "")), " ", "-")
		for n, unique := 1, name; ; n++ {
			if !found[unique] {
				found[unique] = true
				break
			}
			unique = fmt.Sprintf("%s-%d", name, n)
		}
	}
	return found
}
