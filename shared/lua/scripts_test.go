package lua

import (
	"io/fs"
	"os"
	"regexp"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// load reads a file on first use, so a wrong name would fail only in a request.
func TestScripts_EmbeddedAndLoadedOnce(t *testing.T) {
	embedded, err := fs.Glob(sources, "*.lua")
	if err != nil {
		t.Fatal(err)
	}
	files, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	var named []string
	for _, f := range files {
		text, _ := os.ReadFile(f.Name())
		for _, found := range regexp.MustCompile(`= load\("([^"]+)"\)`).FindAllSubmatch(text, -1) {
			named = append(named, string(found[1]))
		}
	}
	slices.Sort(named)
	if diff := cmp.Diff(embedded, named); diff != "" || len(named) == 0 {
		t.Errorf("script files (-) and loaded names (+):\n%s", diff)
	}
}
