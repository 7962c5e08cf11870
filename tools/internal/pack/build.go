package pack

import (
	"context"
	"errors"
	"fmt"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

const (
	frameworkModule = "github.com/GoogleCloudPlatform/functions-framework-go"
	sourceDir       = "serverless_function_source_code" // the packer moves the upload to this folder
	appPackage      = "functions.local/app"             // the packer adds this package
)

// mainSource is the main package of the packer for a self-registering function.
const mainSource = `package main

import (
	"log"
	"net/http"
	"os"

	_ %q

	"github.com/GoogleCloudPlatform/functions-framework-go/funcframework"
)

func main() {
	http.HandleFunc("/robots.txt", http.NotFound)
	http.HandleFunc("/favicon.ico", http.NotFound)
	port := os.Getenv("PORT")
	if port == "" {
		port = "8080"
	}
	if err := funcframework.Start(port); err != nil {
		log.Fatal(err)
	}
}
`

// Build builds an archive in the empty directory dir as the platform's Go packer does (its
// functions_framework and build steps, as of August 2026, for modules with a vendor folder), and
// returns the path of the program. Build fails where the packer refuses an archive.
//
// The build has no network: the module proxy is off and the module cache is empty. It shares the
// cache of compiled packages, with trimmed paths so that the name of dir does not matter. (The
// platform shares no cache.) A build takes several seconds, most of them for linking.
func Build(ctx context.Context, archive []byte, dir string) (string, error) {
	src := filepath.Join(dir, "workspace", sourceDir)
	if err := extract(archive, src); err != nil {
		return "", err
	}
	imports, err := parseImports(src)
	if err != nil {
		return "", err
	}
	if !imports[frameworkModule+"/functions"] {
		return "", errors.New("pack: the root package does not import functions: the packer would look for an exported function")
	}
	for _, file := range []string{"go.mod", "vendor/modules.txt", "vendor/" + frameworkModule + "/funcframework"} {
		if _, err := os.Stat(filepath.Join(src, file)); err != nil {
			return "", fmt.Errorf("pack: the packer needs this file: %w", err)
		}
	}
	if info, err := os.Stat(filepath.Join(src, "go.mod")); err != nil || info.Mode().Perm()&0o200 == 0 {
		return "", errors.New("pack: the packer refuses a go.mod that it cannot write")
	}
	env, err := offlineEnv(ctx, dir)
	if err != nil {
		return "", err
	}
	goes := func(args ...string) (string, error) {
		cmd := exec.CommandContext(ctx, "go", args...)
		cmd.Dir, cmd.Env = src, env
		out, err := commandOutput(cmd)
		return strings.TrimSpace(string(out)), err
	}
	module, err := goes("list", "-m")
	if err != nil {
		return "", err
	}
	if first, _, _ := strings.Cut(module, "/"); !strings.Contains(first, ".") || strings.Contains(module, "\n") {
		return "", fmt.Errorf("pack: the packer needs one module with a dot in its first element, not %q", module)
	}
	if _, err := goes("list", "-m", "-f", "{{.Version}}", frameworkModule); err != nil {
		return "", err
	}
	main := filepath.Join(src, filepath.FromSlash(appPackage))
	if err := os.MkdirAll(main, 0o755); err != nil {
		return "", err
	}
	if err := os.WriteFile(filepath.Join(main, "main.go"), fmt.Appendf(nil, mainSource, module), 0o644); err != nil {
		return "", err
	}
	binary := filepath.Join(dir, "main")
	_, err = goes("build", "-o", binary, main)
	return binary, err
}

// parseImports returns the imports of all Go files at the root. As the packer does, it reads every
// file regardless of its name and build constraints, and all files must have the same package name.
func parseImports(dir string) (map[string]bool, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return nil, err
	}
	name, imports := "", map[string]bool{}
	for _, file := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
		if err != nil {
			return nil, err
		}
		if name != "" && parsed.Name.Name != name {
			return nil, fmt.Errorf("pack: %s has package %s, another file at the root has %s", filepath.Base(file), parsed.Name.Name, name)
		}
		name = parsed.Name.Name
		for _, spec := range parsed.Imports {
			path, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return nil, err
			}
			imports[path] = true
		}
	}
	if name == "" {
		return nil, errors.New("pack: the archive has no Go file at its root")
	}
	return imports, nil
}

// offlineEnv returns the environment of a build without network. The build inherits the toolchain
// and its build cache, and nothing else.
func offlineEnv(ctx context.Context, dir string) ([]string, error) {
	cache, err := commandOutput(exec.CommandContext(ctx, "go", "env", "GOCACHE"))
	if err != nil {
		return nil, err
	}
	return []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "GOCACHE=" + strings.TrimSpace(string(cache)),
		"GOPATH=" + filepath.Join(dir, "gopath"), "GO111MODULE=on", "GOPROXY=off", "GOSUMDB=off", "GOVCS=*:off",
		"GOTOOLCHAIN=local", "GOENV=off", "GOFLAGS=-trimpath -buildvcs=false",
	}, nil
}
