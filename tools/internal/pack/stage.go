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

// modulePrefix starts the paths of all modules of this repository.
const modulePrefix = "melmastoon.ghasi.io/bff-consumer/"

// FunctionArchive returns the archive of a folder under functions/ and the files of the repository
// that are in it, as paths relative to root.
//
// Of this repository's packages the archive contains the files that the compiler reads for Linux on
// amd64: Go files and embedded files, no tests and no unused packages. (The packer parses every Go
// file at the root and refuses a second package name.) Of other modules it contains the copies of
// go mod vendor, so that the build needs no network.
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

// ModuleArchive vendors the dependencies of the module in dir and returns the archive of dir. It
// changes dir.
func ModuleArchive(ctx context.Context, dir string) ([]byte, error) {
	if _, err := runCommand(ctx, dir, nil, "go", "mod", "vendor"); err != nil {
		return nil, err
	}
	return compress(dir)
}

// listedPackage is a package in the output of go list.
type listedPackage struct {
	Dir    string
	Module *struct{ Path, Dir string }
	Error  *struct{ Err string }

	GoFiles, CgoFiles, CFiles, HFiles, SFiles, SysoFiles, EmbedFiles []string
}

// sourceFiles returns the repository's files in the archive of a folder, relative to root and
// sorted: go.mod and go.sum of each module of this repository that the folder uses, and the
// compiled and embedded files of their packages.
func sourceFiles(ctx context.Context, root, folder string) ([]string, error) {
	root, err := filepath.EvalSymlinks(root) // go list prints resolved paths
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

// runCommand runs a command outside the workspace, with further environment variables, and returns
// its standard output. It ignores the caller's GOFLAGS: neither -mod nor -tags may change an
// archive.
func runCommand(ctx context.Context, dir string, more []string, name string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), append([]string{"GOWORK=off", "GOFLAGS="}, more...)...)
	return commandOutput(cmd)
}

// commandOutput runs a command. An error contains its standard error.
func commandOutput(cmd *exec.Cmd) ([]byte, error) {
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args, " "), err, bytes.TrimSpace(stderr.Bytes()))
	}
	return out, nil
}
