package terraform

import (
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
)

var root = filepath.Join("..", "..")

// workspace is shared by all tests, because the build takes seconds.
var workspace = struct {
	once sync.Once
	dir  string
	*Workspace
	err error
}{}

func TestMain(m *testing.M) {
	code := m.Run()
	if workspace.dir != "" {
		os.RemoveAll(workspace.dir)
	}
	os.Exit(code)
}

// newCopy returns a copy of terraform/ that the test may change.
func newCopy(t *testing.T) *Copy {
	t.Helper()
	workspace.once.Do(func() {
		if workspace.dir, workspace.err = os.MkdirTemp("", "bff-terraform-"); workspace.err == nil {
			workspace.Workspace, workspace.err = NewWorkspace(t.Context(), root, workspace.dir)
		}
	})
	if errors.Is(workspace.err, ErrMissing) && os.Getenv("CI") == "" {
		t.Skip(workspace.err)
	}
	if workspace.err != nil {
		t.Fatal(workspace.err)
	}
	c, err := workspace.Copy(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return c
}

var planCache sync.Map // by environment

// planOf returns the plan of an environment of the unchanged repository.
func planOf(t *testing.T, environment string) *Plan {
	t.Helper()
	if p, ok := planCache.Load(environment); ok {
		return p.(*Plan)
	}
	p, err := newCopy(t).Plan(t.Context(), environment)
	if err != nil {
		t.Fatal(err)
	}
	planCache.Store(environment, p)
	return p
}

func TestTerraform_IsFormattedAndValid(t *testing.T) {
	c := newCopy(t)
	if err := c.Format(t.Context()); err != nil {
		t.Error(err)
	}
	if err := c.Validate(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestTerraform_OwnTestsPass(t *testing.T) {
	t.Parallel()
	if err := newCopy(t).Test(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestFindings_NoneForRepository(t *testing.T) {
	for _, environment := range []string{"production", "staging"} {
		t.Run(environment, func(t *testing.T) {
			found, err := findings(root, planOf(t, environment))
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range found {
				t.Error(f)
			}
		})
	}
}
