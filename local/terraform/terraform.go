// Package terraform plans the deployment of terraform/ and reads the plan, for tests. It needs the
// terraform program but no network and no cloud account: tools/tfstub replaces the providers.
package terraform

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"

	"melmastoon.ghasi.io/bff-consumer/local/repository"
)

// ErrMissing means that the PATH has no terraform program.
var ErrMissing = errors.New("terraform: not on the PATH; install 1.11 or newer from HashiCorp's packages")

// providerVersion is the provider version of terraform/versions.tf and of the schema in
// tools/tfstub.
const providerVersion = "7.39.0"

// Workspace is a directory with the stub providers and with copies of terraform/.
type Workspace struct {
	root string // the repository
	dir  string
}

// PlanEnvironment plans an environment of the repository at root, in a new Workspace in dir. Use it
// for a test that needs a single plan. It takes many seconds. It returns ErrMissing without a
// terraform program.
func PlanEnvironment(ctx context.Context, root, dir, environment string) (*Plan, error) {
	b, err := NewWorkspace(ctx, root, dir)
	if err != nil {
		return nil, err
	}
	c, err := b.Copy(ctx)
	if err != nil {
		return nil, err
	}
	return c.Plan(ctx, environment)
}

// NewWorkspace builds the stub providers into dir, as a mirror for terraform. It returns ErrMissing
// without a terraform program.
func NewWorkspace(ctx context.Context, root, dir string) (*Workspace, error) {
	if _, err := exec.LookPath("terraform"); err != nil {
		return nil, ErrMissing
	}
	b := &Workspace{root, dir}
	if err := os.WriteFile(b.configPath(), []byte("disable_checkpoint = true\n"), 0o644); err != nil {
		return nil, err
	}
	stub := filepath.Join(dir, "tfstub")
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-o", stub, ".")
	build.Dir = filepath.Join(root, "tools", "tfstub")
	// no other change, so the build cache has most packages from the tests
	build.Env = append(os.Environ(), "GOWORK=off")
	if out, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("terraform: build the providers: %w\n%s", err, out)
	}
	host, err := b.registryHost(ctx)
	if err != nil {
		return nil, err
	}
	mirror := filepath.Join(dir, "mirror")
	for _, name := range []string{"google", "google-beta"} {
		place := filepath.Join(mirror, host, "hashicorp", name, providerVersion, runtime.GOOS+"_"+runtime.GOARCH)
		if err := os.MkdirAll(place, 0o755); err != nil {
			return nil, err
		}
		if err := os.Link(stub, filepath.Join(place, "terraform-provider-"+name+"_v"+providerVersion)); err != nil {
			return nil, err
		}
	}
	config := fmt.Sprintf("disable_checkpoint = true\nprovider_installation {\n  filesystem_mirror {\n    path = %q\n  }\n}\n", mirror)
	return b, os.WriteFile(b.configPath(), []byte(config), 0o644)
}

func (b *Workspace) configPath() string { return filepath.Join(b.dir, "terraform.rc") }

// registryHost returns the default registry host of the terraform program. It makes no network
// request.
func (b *Workspace) registryHost(ctx context.Context) (string, error) {
	dir := filepath.Join(b.dir, "host")
	if err := os.Mkdir(dir, 0o755); err != nil {
		return "", err
	}
	config := "terraform {\n  required_providers {\n    google = { source = \"hashicorp/google\" }\n  }\n}\n"
	if err := os.WriteFile(filepath.Join(dir, "main.tf"), []byte(config), 0o644); err != nil {
		return "", err
	}
	out, err := b.run(ctx, dir, nil, "providers")
	if err != nil {
		return "", err
	}
	found := regexp.MustCompile(`\[([^/\]]+)/hashicorp/google\]`).FindSubmatch(out)
	if found == nil {
		return "", fmt.Errorf("terraform: cannot read the host of providers from %s", out)
	}
	return string(found[1]), nil
}

// run runs terraform in dir and returns standard output and standard error.
func (b *Workspace) run(ctx context.Context, dir string, env []string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "terraform", args...)
	cmd.Dir = dir
	// GOGC=400: terraform lives for seconds and would spend a third of its CPU time on garbage
	// collection.
	cmd.Env = append(os.Environ(), append(env, "GOGC=400", "TF_CLI_CONFIG_FILE="+b.configPath(), "TF_IN_AUTOMATION=1", "NO_COLOR=1", "TF_CLI_ARGS=-no-color")...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return out, fmt.Errorf("terraform %s: %w\n%s", args[0], err, out)
	}
	return out, nil
}

// Copy is a copy of terraform/ that a test may change.
type Copy struct {
	Dir         string
	workspace   *Workspace
	archivesDir string
	variables   []string // replace the examples in environments/, as a real deployment does
}

// exampleVariables are the variables of an invented deployment.
var exampleVariables = []string{
	`-var=deployers=["group:deployers@ghasi.io"]`,
	`-var=operators=["group:oncall@ghasi.io","user:One@ghasi.io"]`,
	`-var=alert_channels={page_emails=["oncall@ghasi.io"],ticket_emails=["team@ghasi.io"]}`,
	`-var=runbooks_url=https://git.ghasi.io/bff-consumer/docs/runbooks`,
}

// Copy copies terraform/ and runs terraform init in the copy. The function archives contain only
// the name of their folder.
func (b *Workspace) Copy(ctx context.Context) (*Copy, error) {
	dir, err := os.MkdirTemp(b.dir, "copy-")
	if err != nil {
		return nil, err
	}
	if err := os.CopyFS(filepath.Join(dir, "terraform"), os.DirFS(filepath.Join(b.root, "terraform"))); err != nil {
		return nil, err
	}
	c := &Copy{filepath.Join(dir, "terraform"), b, filepath.Join(dir, "packs"), exampleVariables}
	if err := os.Mkdir(c.archivesDir, 0o755); err != nil {
		return nil, err
	}
	folders, err := repository.FunctionFolders(b.root)
	if err != nil {
		return nil, err
	}
	for _, folder := range folders {
		if err := os.WriteFile(filepath.Join(c.archivesDir, folder+".zip"), []byte(folder), 0o644); err != nil {
			return nil, err
		}
	}
	// A local backend replaces the remote state of the deployed system.
	local := []byte("terraform {\n  backend \"local\" {}\n}\n")
	if err := os.WriteFile(filepath.Join(c.Dir, "backend_override.tf"), local, 0o644); err != nil {
		return nil, err
	}
	_, err = b.run(ctx, c.Dir, nil, "init", "-input=false")
	return c, err
}

// Format returns an error with a diff if a file differs from the output of `terraform fmt`.
func (c *Copy) Format(ctx context.Context) error {
	_, err := c.workspace.run(ctx, c.Dir, nil, "fmt", "-check", "-recursive", "-diff")
	return err
}

// Validate returns an error if types, references or arguments are wrong.
func (c *Copy) Validate(ctx context.Context) error {
	_, err := c.workspace.run(ctx, c.Dir, nil, "validate")
	return err
}

// Test runs `terraform test`.
func (c *Copy) Test(ctx context.Context) error {
	_, err := c.workspace.run(ctx, c.Dir, nil, "test", "-var", "packs_dir="+c.archivesDir)
	return err
}

// Plan plans an environment such as "production". It returns an error with terraform's output.
func (c *Copy) Plan(ctx context.Context, environment string) (*Plan, error) {
	file := filepath.Join(c.Dir, environment+".plan")
	secret := "TF_VAR_edge_secrets=[\"" + strings.Repeat("e", 40) + "\"]"
	args := []string{
		"plan", "-input=false", "-refresh=false", "-compact-warnings", "-out=" + file,
		"-var-file=" + filepath.Join("environments", environment+".tfvars"),
		"-var=project=melmastoon-" + environment, "-var=project_number=123456789", "-var=packs_dir=" + c.archivesDir,
	}
	_, err := c.workspace.run(ctx, c.Dir, []string{secret}, append(args, c.variables...)...)
	if err != nil {
		return nil, err
	}
	text, err := c.workspace.run(ctx, c.Dir, nil, "show", "-json", file)
	if err != nil {
		return nil, err
	}
	var p Plan
	if err := json.NewDecoder(bytes.NewReader(text)).Decode(&p); err != nil {
		return nil, fmt.Errorf("terraform: read the plan of %s: %w", environment, err)
	}
	return &p, nil
}
