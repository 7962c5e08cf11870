package repository

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestFind_ReturnsDirectoryOfWorkspace(t *testing.T) {
	root, err := Find()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(root, "dev")); err != nil {
		t.Errorf("Find() = %s: %v", root, err)
	}
	t.Chdir(t.TempDir())
	if root, err := Find(); err == nil || !strings.Contains(err.Error(), "go.work") {
		t.Errorf("outside the repository: Find() = %q, %v", root, err)
	}
}

func TestFunctionFolders_ListsModulesSorted(t *testing.T) {
	t.Parallel()
	folders, err := FunctionFolders("../..")
	if err != nil || !slices.Contains(folders, "search") || !slices.IsSorted(folders) {
		t.Errorf("FunctionFolders() = %q, %v", folders, err)
	}
	if folders, err := FunctionFolders(t.TempDir()); err == nil {
		t.Errorf("a directory without functions: %q, want an error", folders)
	}
}
