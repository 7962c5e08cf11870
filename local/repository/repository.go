// Package repository finds the repository on the disk and lists the function folders. The package
// only reads directories.
package repository

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// Find returns the nearest directory with a go.work at or above the working directory. Find fails
// without such a directory.
func Find() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for ; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.work")); err == nil {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", errors.New("the working directory is not inside the repository: no directory above it has a go.work")
		}
	}
}

// FunctionFolders returns the sorted names of the folders with a go.mod under functions/. The
// function fails when root has no such folder.
func FunctionFolders(root string) ([]string, error) {
	found, err := filepath.Glob(filepath.Join(root, "functions", "*", "go.mod"))
	if err != nil {
		return nil, err
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("%s is not the repository: it has no functions/*/go.mod", root)
	}
	for i, file := range found {
		found[i] = filepath.Base(filepath.Dir(file))
	}
	return found, nil
}
