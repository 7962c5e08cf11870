package functions

import (
	"go/parser"
	"go/token"
	"path"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"melmastoon.ghasi.io/bff-consumer/local/repository"
)

func TestImports_ListEveryFolder(t *testing.T) {
	t.Parallel()
	file, err := parser.ParseFile(token.NewFileSet(), "functions.go", nil, parser.ImportsOnly)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, spec := range file.Imports {
		got = append(got, path.Base(strings.Trim(spec.Path.Value, `"`)))
	}
	want, err := repository.FunctionFolders("../..")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("folders of functions/ (-) and imports (+):\n%s", diff)
	}
}
