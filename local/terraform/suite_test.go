package terraform

import (
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
)

var root = filepath.Join("..", "..")

// bench is shared by all tests: building it takes seconds.
var bench = struct {
	once sync.Once
	dir  string
	*Bench
	err error
}{}

func TestMain(m *testing.M) {
	code := m.Run()
	if bench.dir != "" {
		os.RemoveAll(bench.dir)
	}
	os.Exit(code)
}

// fresh is a copy of terraform/ that the test may change.
func fresh(t *testing.T) *Copy {
	t.Helper()
	bench.once.Do(func() {
		if bench.dir, bench.err = os.MkdirTemp("", "bff-terraform-"); bench.err == nil {
			bench.Bench, bench.err = NewBench(t.Context(), root, bench.dir)
		}
	})
	if errors.Is(bench.err, ErrMissing) && os.Getenv("CI") == "" {
		t.Skip(bench.err)
	}
	if bench.err != nil {
		t.Fatal(bench.err)
	}
	c, err := bench.Copy(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return c
}

var planned sync.Map // by environment

// plan is what an environment would be made of, as the repository has it.
func plan(t *testing.T, environment string) *Plan {
	t.Helper()
	if p, ok := planned.Load(environment); ok {
		return p.(*Plan)
	}
	p, err := fresh(t).Plan(t.Context(), environment)
	if err != nil {
		t.Fatal(err)
	}
	planned.Store(environment, p)
	return p
}

func TestTerraformIsFormattedAndValid(t *testing.T) {
	c := fresh(t)
	if err := c.Format(t.Context()); err != nil {
		t.Error(err)
	}
	if err := c.Validate(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestTerraformsOwnTests(t *testing.T) {
	t.Parallel()
	if err := fresh(t).Test(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestWhatIsDeployedIsWhatTheCodeIs(t *testing.T) {
	for _, environment := range []string{"production", "staging"} {
		t.Run(environment, func(t *testing.T) {
			found, err := findings(root, plan(t, environment))
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range found {
				t.Error(f)
			}
		})
	}
}
