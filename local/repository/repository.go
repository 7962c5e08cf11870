// Package repository finds this repository on the disk and lists its function folders. It only reads
// directory entries.
package repository

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// Find returns the nearest directory at or above the working directory that has a go.work. It fails
// when there is none.
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

// FunctionFolders returns the names of the folders under functions/ that have a go.mod, sorted. It
// fails when root has no such folder.
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
