// Package pack makes the archives that are deployed, one for each folder under functions/, and
// builds an archive as the platform does. It never deploys an archive.
package pack

import (
	"bytes"
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

	"golang.org/x/sync/errgroup"

	"melmastoon.ghasi.io/bff-consumer/local/repository"
)

// All, in place of a folder's name, means every folder.
const All = "all"

// Options are the arguments of Run.
type Options struct {
	Root     string    // the repository
	Function string    // a folder under functions/, or All
	OutDir   string    // for the archives; "" means dist in Root
	BuildDir string    // for the programs, BuildDir/<folder>/main; "" means no build
	Log      io.Writer // one line per archive and program
}

// Run writes OutDir/<folder>.zip for each folder and logs its size and SHA-256. With BuildDir it
// builds the archive and logs the program's path. The archives contain the files of the working
// tree. Run logs packed files that differ from the commit, because no commit reproduces such an
// archive. Run packs two folders at a time and logs the folders in order at the end.
func Run(ctx context.Context, o Options) error {
	folders, err := repository.FunctionFolders(o.Root)
	if err != nil {
		return err
	}
	if o.Function != All {
		if !slices.Contains(folders, o.Function) {
			return fmt.Errorf("unknown function folder %q; the folders are %s", o.Function, strings.Join(folders, ", "))
		}
		folders = []string{o.Function}
	}
	out := cmp.Or(o.OutDir, filepath.Join(o.Root, "dist"))
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	logs, packed := make([]bytes.Buffer, len(folders)), make([][]string, len(folders))
	all, running := errgroup.WithContext(ctx)
	all.SetLimit(2) // a link uses little more than one core
	for i, folder := range folders {
		all.Go(func() (err error) {
			packed[i], err = packFolder(running, o, folder, filepath.Join(out, folder+".zip"), &logs[i])
			return err
		})
	}
	err = all.Wait()
	for i := range logs {
		io.Copy(o.Log, &logs[i])
	}
	if err != nil {
		return err
	}
	files := slices.Concat(packed...)
	slices.Sort(files)
	return reportUncommitted(ctx, o, slices.Compact(files))
}

// packFolder writes the archive of a folder to path and builds the archive if o.BuildDir is set. It
// returns the packed files.
func packFolder(ctx context.Context, o Options, folder, path string, log io.Writer) ([]string, error) {
	archive, files, err := FunctionArchive(ctx, o.Root, folder)
	if err != nil {
		return nil, err
	}
	if err := writeAtomic(path, archive); err != nil {
		return nil, err
	}
	fmt.Fprintf(log, "%s  %.1f MB  sha256:%x\n", path, float64(len(archive))/1e6, sha256.Sum256(archive))
	if o.BuildDir == "" {
		return files, nil
	}
	program, err := Build(ctx, archive, filepath.Join(o.BuildDir, folder))
	if err != nil {
		return nil, fmt.Errorf("pack: %s: %w", folder, err)
	}
	fmt.Fprintln(log, program)
	return files, nil
}

// reportUncommitted logs the packed files that differ from the commit. Without git, or outside a
// git repository, the log says that the commit is unknown.
func reportUncommitted(ctx context.Context, o Options, packed []string) error {
	cmd := exec.CommandContext(ctx, "git", "-C", o.Root, "status", "--porcelain=v1", "-z", "--untracked-files=all", "--ignored=matching", "--no-renames")
	out, err := cmd.Output()
	if err != nil {
		var ended *exec.ExitError
		if !errors.As(err, &ended) && !errors.Is(err, exec.ErrNotFound) {
			return err
		}
		fmt.Fprintln(o.Log, "no git repository: the commit of these archives is unknown")
		return nil
	}
	for _, entry := range strings.Split(string(out), "\x00") {
		if len(entry) < 4 {
			continue
		}
		if name := entry[3:]; slices.Contains(packed, name) {
			fmt.Fprintf(o.Log, "differs from the commit: %s\n", name)
		}
	}
	return nil
}

// writeAtomic writes a file beside path and renames it, so that path never has half of the content.
func writeAtomic(path string, content []byte) error {
	half := path + ".new"
	if err := os.WriteFile(half, content, 0o644); err != nil {
		return err
	}
	return os.Rename(half, path)
}
