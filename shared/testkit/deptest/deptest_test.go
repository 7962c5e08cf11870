package deptest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// recordingTB records what Golden says of a module made up for a test.
type recordingTB struct {
	testing.TB
	failures []string
}

type fatalCalled struct{}

func (v *recordingTB) Helper()           {}
func (v *recordingTB) Error(args ...any) { v.failures = append(v.failures, fmt.Sprint(args...)) }
func (v *recordingTB) Fatal(args ...any) { v.Error(args...); panic(fatalCalled{}) }
func (v *recordingTB) Errorf(format string, args ...any) {
	v.failures = append(v.failures, fmt.Sprintf(format, args...))
}
func (v *recordingTB) Fatalf(format string, args ...any) {
	v.Errorf(format, args...)
	panic(fatalCalled{})
}

// runGolden writes files into a fresh module and asks Golden about it. A second module,
// example.com/room, is beside it.
func runGolden(t *testing.T, files map[string]string, may ...string) string {
	t.Helper()
	dir := t.TempDir()
	all := map[string]string{
		"go.mod":         "module example.com/search\n\ngo 1.26\n\nrequire example.com/room v0.0.0\n\nreplace example.com/room => ./room\n",
		"room/go.mod":    "module example.com/room\n\ngo 1.26\n",
		"room/room.go":   "package room\n",
		"search_test.go": "package search\n\nimport _ \"testing\"\n",
	}
	for name, text := range files {
		all[name] = text
	}
	for name, text := range all {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(dir)
	t.Setenv("GOWORK", "off")
	v := &recordingTB{TB: t}
	func() {
		defer func() {
			if r := recover(); r != nil && r != (fatalCalled{}) {
				panic(r)
			}
		}()
		Golden(v, may...)
	}()
	return strings.Join(v.failures, "\n")
}

const importingSource = "package search\n\nimport _ \"example.com/room\"\n"

func TestDeptestGolden_PassesWhenListMatches(t *testing.T) {
	said := runGolden(t, map[string]string{"search.go": importingSource, "deps.txt": "example.com/room\nexample.com/search\n"})
	if said != "" {
		t.Error(said)
	}
}

func TestDeptestGolden_FailsOnAnyDifference(t *testing.T) {
	for name, c := range map[string]struct{ code, deps, want string }{
		"a new module":      {importingSource, "example.com/search\n", "lacks example.com/room"},
		"a module no more":  {"package search\n", "example.com/room\nexample.com/search\n", "has example.com/room, which is not linked"},
		"another order":     {importingSource, "example.com/search\nexample.com/room\n", "is not sorted"},
		"a broken function": {"package search\n\nimport _ \"example.com/none\"\n", "example.com/search\n", "list packages"},
	} {
		t.Run(name, func(t *testing.T) {
			if said := runGolden(t, map[string]string{"search.go": c.code, "deps.txt": c.deps}); !strings.Contains(said, c.want) {
				t.Errorf("said %q, want %q", said, c.want)
			}
		})
	}
	t.Run("no list", func(t *testing.T) {
		if said := runGolden(t, map[string]string{"search.go": importingSource}); !strings.Contains(said, "-update") {
			t.Errorf("said %q", said)
		}
	})
}

func TestDeptestGolden_UpdateWritesList(t *testing.T) {
	*update = true
	defer func() { *update = false }()
	if said := runGolden(t, map[string]string{"search.go": importingSource}); said != "" {
		t.Error(said)
	}
	written, err := os.ReadFile(goldenFile)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff("example.com/room\nexample.com/search\n", string(written)); diff != "" {
		t.Error(diff)
	}
}

func TestDeptestGolden_NamesImporterOfBannedPackage(t *testing.T) {
	said := runGolden(t, map[string]string{
		"search.go":    importingSource,
		"room/room.go": "package room\n\nimport (\n\t_ \"testing\"\n\t_ \"testing/fstest\"\n)\n",
		"deps.txt":     "example.com/room\nexample.com/search\n",
	})
	for _, want := range []string{"links testing/fstest, imported by example.com/room", "links testing, imported by example.com/room"} {
		if !strings.Contains(said, want) {
			t.Errorf("said %q, want %q", said, want)
		}
	}
}

func TestFindBanned_TestPackagesAndPubSub(t *testing.T) {
	root := modulePrefix + "functions/search"
	for path, bad := range map[string]bool{
		modulePrefix + "shared/testkit/functest":    true,
		modulePrefix + "shared/testkit/pgtest":      true,
		modulePrefix + "shared/testkit/redistest":   true,
		modulePrefix + "shared/testkit/deptest":     true,
		modulePrefix + "shared/testkit/localstores": true,
		modulePrefix + "shared/migrations":          true,
		modulePrefix + "local/sandbox":              true,
		PubSub + "/v2":                              true,
		"testing":                                   true,
		"testing/iotest":                            true,
		"cloud.google.com/go/pubsublite":            false,
		modulePrefix + "shared/event":               false,
		modulePrefix + "shared/locale":              false,
		"example.com/testing":                       false,
		"github.com/stretchr/objx/testingkit":       false,
	} {
		found := findBanned([]pkg{{ImportPath: root, Imports: []string{path}}, {ImportPath: path}}, nil)
		want := []string(nil)
		if bad {
			want = []string{"links " + path + ", imported by " + root}
		}
		if diff := cmp.Diff(want, found); diff != "" {
			t.Errorf("%s: %s", path, diff)
		}
	}
	relay := []pkg{{ImportPath: PubSub + "/v2"}, {ImportPath: "testing"}}
	if diff := cmp.Diff([]string{"links testing, imported by itself"}, findBanned(relay, []string{PubSub})); diff != "" {
		t.Errorf("the relay may link Pub/Sub and nothing else: %s", diff)
	}
}
