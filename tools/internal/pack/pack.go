// Package pack owns the archives that are deployed, one for each folder under functions/, and the build that the platform
// makes of one. It never deploys anything.
package pack

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"melmastoon.ghasi.io/bff-consumer/local/repository"
)

// All in place of a folder's name means each of them.
const All = "all"

// Options are what a person chooses.
type Options struct {
	Root     string // of the repository
	Function string // a folder under functions/, or All
	OutDir   string // directory of the archives; "": dist in Root
	BuildDir string // directory of what Build makes of them, BUILT/<folder>/main; "": they are not built
	Log      io.Writer
}

// Run writes Out/<folder>.zip for each folder, and a line about each: its size and SHA-256; and another about its program, if that
// is built. What goes in is what lies in the
// working tree; files of it that differ from the commit are named, because no commit will build this archive again.
func Run(ctx context.Context, o Options) error {
	folders, err := repository.FunctionFolders(o.Root)
	if err != nil {
		return err
	}
	if o.Function != All {
		if !slices.Contains(folders, o.Function) {
			return fmt.Errorf("there is no function folder %q; there is: %s", o.Function, strings.Join(folders, ", "))
		}
		folders = []string{o.Function}
	}
	out := cmp.Or(o.OutDir, filepath.Join(o.Root, "dist"))
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	var packed []string
	for _, folder := range folders {
		archive, files, err := FunctionArchive(ctx, o.Root, folder)
		if err != nil {
			return err
		}
		path := filepath.Join(out, folder+".zip")
		if err := writeAtomic(path, archive); err != nil {
			return err
		}
		packed = append(packed, files...)
		fmt.Fprintf(o.Log, "%s  %.1f MB  sha256:%x\n", path, float64(len(archive))/1e6, sha256.Sum256(archive))
		if o.BuildDir == "" {
			continue
		}
		program, err := Build(ctx, archive, filepath.Join(o.BuildDir, folder))
		if err != nil {
			return fmt.Errorf("pack: %s: %w", folder, err)
		}
		fmt.Fprintln(o.Log, program)
	}
	slices.Sort(packed)
	return reportUncommitted(ctx, o, slices.Compact(packed))
}

// reportUncommitted names those of the packed files that are not as committed.
func reportUncommitted(ctx context.Context, o Options, packed []string) error {
	cmd := exec.CommandContext(ctx, "git", "-C", o.Root, "status", "--porcelain=v1", "-z", "--untracked-files=all", "--ignored=matching", "--no-renames")
	out, err := cmd.Output()
	if err != nil {
		var ended *exec.ExitError
		if !errors.As(err, &ended) && !errors.Is(err, exec.ErrNotFound) {
			return err
		}
		fmt.Fprintln(o.Log, "git does not know this tree: nothing tells which commit these archives are of")
		return nil
	}
	for _, entry := range strings.Split(string(out), "\x00") {
		if len(entry) < 4 {
			continue
		}
		if name := entry[3:]; slices.Contains(packed, name) {
			fmt.Fprintf(o.Log, "not as committed: %s\n", name)
		}
	}
	return nil
}

// writeAtomic writes a file whole or not at all.
func writeAtomic(path string, content []byte) error {
	half := path + ".new"
	if err := os.WriteFile(half, content, 0o644); err != nil {
		return err
	}
	return os.Rename(half, path)
}
