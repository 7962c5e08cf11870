package pack

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// modulePrefix is what the paths of our modules begin with.
const modulePrefix = "melmastoon.ghasi.io/bff-consumer/"

// FunctionArchive makes the archive of one folder, and says which files of the repository are in it, by their paths from its root.
//
// Of our packages the archive has what the compiler reads for Linux on amd64: the Go files that are compiled and the files that are
// embedded, no tests, no other package of the folder. The packer parses every Go file at the root, so one of another package there
// would be refused. Of other modules it has what go mod vendor copies. The build then needs no network and tidies nothing.
func FunctionArchive(ctx context.Context, root, folder string) (archive []byte, files []string, err error) {
	stage, err := os.MkdirTemp("", "bff-consumer-pack-")
	if err != nil {
		return nil, nil, err
	}
	defer os.RemoveAll(stage)
	if files, err = sourceFiles(ctx, root, folder); err != nil {
		return nil, nil, fmt.Errorf("pack: %s: %w", folder, err)
	}
	for _, file := range files {
		if err := copyFile(filepath.Join(stage, file), filepath.Join(root, file)); err != nil {
			return nil, nil, fmt.Errorf("pack: %s: %w", folder, err)
		}
	}
	if archive, err = ModuleArchive(ctx, filepath.Join(stage, "functions", folder)); err != nil {
		return nil, nil, fmt.Errorf("pack: %s: %w", folder, err)
	}
	return archive, files, nil
}

// ModuleArchive vendors what the module in a directory imports, beside it, and makes the archive of both.
func ModuleArchive(ctx context.Context, dir string) ([]byte, error) {
	if _, err := runCommand(ctx, dir, nil, "go", "mod", "vendor"); err != nil {
		return nil, err
	}
	return compress(dir)
}

// listedPackage is what go list says of a package.
type listedPackage struct {
	Dir    string
	Module *struct{ Path, Dir string }
	Error  *struct{ Err string }

	GoFiles, CgoFiles, CFiles, HFiles, SFiles, SysoFiles, EmbedFiles []string
}

// sourceFiles are the files of the repository that a folder's archive is made of, by their paths from its root: the module files of the
// folder and of what it replaces, and what is compiled of them.
func sourceFiles(ctx context.Context, root, folder string) ([]string, error) {
	root, err := filepath.EvalSymlinks(root) // as go list has it
	if err == nil {
		root, err = filepath.Abs(root)
	}
	if err != nil {
		return nil, err
	}
	out, err := runCommand(ctx, filepath.Join(root, "functions", folder), []string{"GOOS=linux", "GOARCH=amd64"}, "go", "list", "-deps",
		"-json=Dir,Module,Error,GoFiles,CgoFiles,CFiles,HFiles,SFiles,SysoFiles,EmbedFiles", ".")
	if err != nil {
		return nil, err
	}
	var files []string
	add := func(dir, name string) error {
		file, err := filepath.Rel(root, filepath.Join(dir, name))
		if err != nil || !filepath.IsLocal(file) {
			return fmt.Errorf("%s is not in the repository", filepath.Join(dir, name))
		}
		files = append(files, file)
		return nil
	}
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listedPackage
		switch err := dec.Decode(&p); {
		case errors.Is(err, io.EOF):
			slices.Sort(files)
			return slices.Compact(files), nil
		case err != nil:
			return nil, fmt.Errorf("read the list of packages: %w", err)
		case p.Error != nil:
			return nil, errors.New(p.Error.Err)
		case p.Module == nil || !strings.HasPrefix(p.Module.Path, modulePrefix):
			continue
		}
		for _, name := range []string{"go.mod", "go.sum"} {
			if err := add(p.Module.Dir, name); err != nil {
				return nil, err
			}
		}
		for _, name := range slices.Concat(p.GoFiles, p.CgoFiles, p.CFiles, p.HFiles, p.SFiles, p.SysoFiles, p.EmbedFiles) {
			if err := add(p.Dir, name); err != nil {
				return nil, err
			}
		}
	}
}

func copyFile(to, from string) error {
	content, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	return os.WriteFile(to, content, 0o644)
}

// runCommand is a command outside of any workspace, with more in its environment. What is set for the developer's own builds does not count:
// neither may -mod, nor may tags change what is packed.
func runCommand(ctx context.Context, dir string, more []string, name string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), append([]string{"GOWORK=off", "GOFLAGS="}, more...)...)
	return commandOutput(cmd)
}

func commandOutput(cmd *exec.Cmd) ([]byte, error) {
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args, " "), err, bytes.TrimSpace(stderr.Bytes()))
	}
	return out, nil
}
