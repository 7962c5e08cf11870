// Package deptest checks the modules linked into a deployed binary against a reviewed list, and
// rejects packages for tests. It never reads test files. Only tests import it.
package deptest

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write golden files such as deps.txt")

const (
	goldenFile   = "deps.txt"
	modulePrefix = "melmastoon.ghasi.io/bff-consumer/"
)

// PubSub is the module of the Pub/Sub client, linked by the relay only: the client adds 9 MiB to
// the binary and 3 ms to a cold start.
const PubSub = "cloud.google.com/go/pubsub"

// GRPC comes with the connector of Cloud SQL and with most of Google's clients. It adds 8 MiB to
// the binary and 4 ms of CPU to a cold start. search and detail do not link it.
const GRPC = "google.golang.org/grpc"

// banned lists package paths, including their sub-packages, that a function links only with a
// permission in Golden.
var banned = []string{
	"testing", PubSub, GRPC,
	modulePrefix + "shared/testkit", modulePrefix + "shared/migrations", modulePrefix + "functions/relay/pubsubtest", modulePrefix + "local", modulePrefix + "tools",
	modulePrefix + "shared/event/strict",
}

// Golden fails the test if the modules linked by the package in the current directory differ from
// its deps.txt, or if the package links a banned path that is not in may. go test -run Deps -update
// writes deps.txt. Golden runs go list, which takes a second or more.
func Golden(t testing.TB, may ...string) {
	t.Helper()
	packages, err := listPackages()
	if err != nil {
		t.Fatal(err)
	}
	for _, problem := range findBanned(packages, may) {
		t.Error(problem)
	}
	list := modules(packages)
	if *update {
		if err := os.WriteFile(goldenFile, []byte(list), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	reviewed, err := os.ReadFile(goldenFile)
	if err != nil {
		t.Fatalf("%v; write it: go test -run Deps -update", err)
	}
	for _, change := range diffLists(string(reviewed), list) {
		t.Errorf("%s %s; after a review: go test -run Deps -update", goldenFile, change)
	}
}

// pkg is a package of the binary, as described by go list.
type pkg struct {
	ImportPath string
	Imports    []string
	Module     *struct{ Path string }
}

// listPackages lists the package of the current directory and its dependencies, as built for Cloud
// Run (linux/amd64).
func listPackages() ([]pkg, error) {
	cmd := exec.Command("go", "list", "-deps", "-json=ImportPath,Imports,Module", ".")
	cmd.Env = append(os.Environ(), "GOOS=linux", "GOARCH=amd64")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("deptest: list packages: %w\n%s", err, &stderr)
	}
	var all []pkg
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p pkg
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, fmt.Errorf("deptest: read the list of packages: %w", err)
		}
		all = append(all, p)
	}
}

// modules returns a line for each module, sorted, without versions: go.sum has the versions.
func modules(packages []pkg) string {
	found := map[string]bool{}
	for _, p := range packages {
		if p.Module != nil {
			found[p.Module.Path+"\n"] = true
		}
	}
	return strings.Join(slices.Sorted(maps.Keys(found)), "")
}

// findBanned describes each linked banned package and an importer of it.
func findBanned(packages []pkg, may []string) (found []string) {
	for _, p := range packages {
		if !slices.ContainsFunc(banned, func(b string) bool { return isUnder(p.ImportPath, b) && !slices.Contains(may, b) }) {
			continue
		}
		by := "itself"
		for _, importer := range packages {
			if slices.Contains(importer.Imports, p.ImportPath) {
				by = importer.ImportPath
				break
			}
		}
		found = append(found, fmt.Sprintf("links %s, imported by %s", p.ImportPath, by))
	}
	return found
}

// isUnder reports whether path is root or a sub-package of root.
func isUnder(path, root string) bool { return path == root || strings.HasPrefix(path, root+"/") }

// diffLists describes the differences between the reviewed list and the present list.
func diffLists(reviewed, list string) (found []string) {
	was, now := strings.Fields(reviewed), strings.Fields(list)
	for _, module := range now {
		if !slices.Contains(was, module) {
			found = append(found, "lacks "+module)
		}
	}
	for _, module := range was {
		if !slices.Contains(now, module) {
			found = append(found, "has "+module+", which is not linked")
		}
	}
	if len(found) == 0 && reviewed != list {
		found = append(found, "is not sorted, one module a line")
	}
	return found
}
