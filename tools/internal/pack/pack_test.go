package pack

import (
	"archive/zip"
	"bytes"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// writeTree writes files below a directory and returns it.
func writeTree(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// repositoryFiles returns a small repository: a function that imports one of two shared packages.
func repositoryFiles() map[string]string {
	return map[string]string{
		"go.work":                       "go 1.26.0\n\nuse ./functions/hello\nuse ./shared\n",
		"functions/hello/go.mod":        "module " + modulePrefix + "functions/hello\n\ngo 1.26.0\n\nrequire " + modulePrefix + "shared v0.0.0\n\nreplace " + modulePrefix + "shared => ../../shared\n",
		"functions/hello/go.sum":        "",
		"functions/hello/function.go":   "package hello\n\nimport _ \"" + modulePrefix + "shared/greeting\"\n",
		"functions/hello/other_test.go": "package hello_test\n",
		"functions/hello/tool.go":       "//go:build ignore\n\npackage main\n",
		"functions/hello/notes.txt":     "not embedded",
		"functions/hello/kit/kit.go":    "package kit\n",
		"shared/go.mod":                 "module " + modulePrefix + "shared\n\ngo 1.26.0\n",
		"shared/go.sum":                 "",
		"shared/greeting/greeting.go":   "package greeting\n\nimport _ \"embed\"\n\n//go:embed hello.txt\nvar hello string\n",
		"shared/greeting/hello.txt":     "hello",
		"shared/greeting/draft.txt":     "not embedded",
		"shared/farewell/farewell.go":   "package farewell\n",
	}
}

func archiveNames(t *testing.T, archive []byte) (names []string) {
	t.Helper()
	in, err := zip.NewReader(bytes.NewReader(archive), int64(len(archive)))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range in.File {
		names = append(names, file.Name)
		if file.Mode() != fs.FileMode(0o644) || !file.Modified.Equal(zipEpoch) {
			t.Errorf("%s has mode %v and time %v, want -rw-r--r-- and %v", file.Name, file.Mode(), file.Modified, zipEpoch)
		}
	}
	return names
}

func TestFunctionArchive_HoldsOnlyCompiledFiles(t *testing.T) {
	t.Parallel()
	root := writeTree(t, repositoryFiles())
	archive, files, err := FunctionArchive(t.Context(), root, "hello")
	if err != nil {
		t.Fatal(err)
	}
	vendored := "vendor/" + modulePrefix + "shared/greeting/"
	want := []string{"function.go", "go.mod", "go.sum", vendored + "greeting.go", vendored + "hello.txt", "vendor/modules.txt"}
	if got := archiveNames(t, archive); !slices.Equal(got, want) {
		t.Errorf("archive has %q, want %q", got, want)
	}
	if want := []string{
		"functions/hello/function.go", "functions/hello/go.mod", "functions/hello/go.sum",
		"shared/go.mod", "shared/go.sum", "shared/greeting/greeting.go", "shared/greeting/hello.txt",
	}; !slices.Equal(files, want) {
		t.Errorf("packed files %q, want %q", files, want)
	}
}

func TestFunctionArchive_IsReproducible(t *testing.T) {
	files := repositoryFiles()
	first, _, err := FunctionArchive(t.Context(), writeTree(t, files), "hello")
	if err != nil {
		t.Fatal(err)
	}
	elsewhere := writeTree(t, files)
	for name := range files { // a clone of another day has other times and modes
		if err := os.Chtimes(filepath.Join(elsewhere, name), time.Time{}, time.Unix(1e9, 0)); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(filepath.Join(elsewhere, name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("GOFLAGS", "-mod=readonly -tags=other")
	second, _, err := FunctionArchive(t.Context(), elsewhere, "hello")
	if err != nil || !bytes.Equal(first, second) {
		t.Errorf("the archives of two clones differ: %d and %d bytes, %v", len(first), len(second), err)
	}
	files["shared/greeting/hello.txt"] = "good day"
	if third, _, err := FunctionArchive(t.Context(), writeTree(t, files), "hello"); err != nil || bytes.Equal(first, third) {
		t.Errorf("a changed file gives the same archive: %v", err)
	}
}

func TestRun_NamesUncommittedFiles(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip(err)
	}
	files := repositoryFiles()
	files[".gitignore"] = "ignored.go\n"
	root := writeTree(t, files)
	git := func(args ...string) {
		t.Helper()
		cmd := exec.Command("git", append([]string{"-C", root, "-c", "user.name=a", "-c", "user.email=a@b.invalid"}, args...)...)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	said := func() string {
		t.Helper()
		var said bytes.Buffer
		if err := Run(t.Context(), Options{Root: root, Function: All, OutDir: t.TempDir(), Log: &said}); err != nil {
			t.Fatal(err)
		}
		_, warned, _ := strings.Cut(said.String(), "\n")
		return warned
	}
	if got := said(); !strings.Contains(got, "no git repository") {
		t.Errorf("log outside a repository: %q", got)
	}
	git("init", "-q")
	git("add", "-A")
	git("commit", "-q", "-m", "all")
	if got := said(); got != "" {
		t.Errorf("log after a commit: %q", got)
	}
	for name, content := range map[string]string{
		"shared/greeting/hello.txt": "changed", "shared/greeting/new.go": "package greeting\n", "functions/hello/ignored.go": "package hello\n",
		"functions/hello/notes.txt": "changed, and not packed",
	} {
		if err := os.WriteFile(filepath.Join(root, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	lines := strings.Split(strings.TrimSpace(said()), "\n")
	slices.Sort(lines)
	if want := []string{
		"differs from the commit: functions/hello/ignored.go", "differs from the commit: shared/greeting/hello.txt", "differs from the commit: shared/greeting/new.go",
	}; !slices.Equal(lines, want) {
		t.Errorf("log %q does not name the changed files", lines)
	}
}

func TestRun_ErrorNamesReasonAndLeavesNoArchive(t *testing.T) {
	t.Parallel()
	broken := repositoryFiles()
	broken["functions/hello/function.go"] = "package hello\n\nimport _ \"" + modulePrefix + "shared/missing\"\n"
	for name, c := range map[string]struct {
		files            map[string]string
		function, reason string
	}{
		"no such folder":     {repositoryFiles(), "brew", "the folders are hello"},
		"not the repository": {map[string]string{"go.work": ""}, All, "is not the repository"},
		"a missing package":  {broken, All, "shared/missing"},
	} {
		out := filepath.Join(t.TempDir(), "out")
		err := Run(t.Context(), Options{Root: writeTree(t, c.files), Function: c.function, OutDir: out, Log: &bytes.Buffer{}})
		if err == nil || !strings.Contains(err.Error(), c.reason) {
			t.Errorf("%s: error %v, want one with its reason", name, err)
		}
		if left, _ := filepath.Glob(filepath.Join(out, "*")); len(left) > 0 {
			t.Errorf("%s: Run left files %v", name, left)
		}
	}
}

// The platform's packer rejects each of these archives.
func TestBuild_RejectsWhatThePlatformRejects(t *testing.T) {
	t.Parallel()
	const registers = "package hello\n\nimport _ \"" + frameworkModule + "/functions\"\n"
	good := map[string]string{
		"function.go": registers, "go.mod": "module " + modulePrefix + "functions/hello\n\ngo 1.26.0\n",
		"vendor/modules.txt": "", "vendor/" + frameworkModule + "/funcframework/f.go": "package funcframework\n",
	}
	with := func(changes map[string]string) map[string]string {
		files := maps.Clone(good)
		for name, content := range changes {
			files[name] = content
			if content == "" {
				delete(files, name)
			}
		}
		return files
	}
	for name, c := range map[string]struct {
		files  map[string]string
		reason string
	}{
		"a test of another package":   {with(map[string]string{"x_test.go": "package hello_test\n"}), "another file at the root"},
		"no function registers":       {with(map[string]string{"function.go": "package hello\n"}), "does not import functions"},
		"no Go at the root":           {with(map[string]string{"function.go": ""}), "no Go file"},
		"no module":                   {with(map[string]string{"go.mod": ""}), "go.mod"},
		"not vendored":                {with(map[string]string{"vendor/" + frameworkModule + "/funcframework/f.go": ""}), "funcframework"},
		"a module path without a dot": {with(map[string]string{"go.mod": "module hello\n\ngo 1.26.0\n"}), "a dot in its first element"},
		"what it needs is elsewhere":  {good, frameworkModule},
	} {
		archive, err := compress(writeTree(t, c.files))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Build(t.Context(), archive, t.TempDir()); err == nil || !strings.Contains(err.Error(), c.reason) {
			t.Errorf("%s: error %v, want one with its reason", name, err)
		}
	}
}

func TestExtract_RejectsPathOutsideDirectory(t *testing.T) {
	t.Parallel()
	var buffer bytes.Buffer
	w := zip.NewWriter(&buffer)
	if _, err := w.Create("../outside.go"); err != nil {
		t.Fatal(err)
	}
	w.Close()
	if err := extract(buffer.Bytes(), t.TempDir()); err == nil {
		t.Error("extract wrote a file outside the directory")
	}
}
