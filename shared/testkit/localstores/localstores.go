// Package stores owns the private Postgres and Redis servers of the local system and of the tests: it finds the
// installed programs, starts them as children and sees that they end with their owner; it never talks to a server
// it did not start.
package localstores

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
)

// MissingError says which server is not installed; its text is the one command that installs it.
type MissingError struct{ Package string } // "postgresql" or "redis-server", as Debian names them

func (e MissingError) Error() string {
	command := "apt-get install " + e.Package
	if runtime.GOOS == "darwin" {
		command = "brew install " + map[string]string{"postgresql": "postgresql@15", "redis-server": "redis"}[e.Package]
	}
	return fmt.Sprintf("stores: %s is not installed: run %q", e.Package, command)
}

// PostgresBin is the directory with initdb, postgres and pg_dump: PGBIN when set, else that of the newest version
// found. Debian keeps the servers off the PATH, Homebrew beside it.
func PostgresBin() (string, error) {
	if dir := os.Getenv("PGBIN"); dir != "" {
		return dir, nil
	}
	var dirs []string
	if path, err := exec.LookPath("initdb"); err == nil {
		if path, err = filepath.EvalSymlinks(path); err == nil { // a link need not have its neighbours beside it
			dirs = append(dirs, filepath.Dir(path))
		}
	}
	for _, pattern := range []string{
		"/usr/lib/postgresql/*/bin",            // Debian, Ubuntu
		"/usr/pgsql-*/bin",                     // Red Hat
		"/usr/libexec/postgresql*",             // Alpine
		"/opt/homebrew/opt/postgresql@*/bin",   // macOS on ARM
		"/usr/local/opt/postgresql@*/bin",      // macOS on Intel
		"/Applications/Postgres.app/*/*/*/bin", // Postgres.app
	} {
		found, _ := filepath.Glob(pattern) // the only error is a bad pattern
		slices.Sort(found)
		slices.Reverse(found)
		dirs = append(dirs, found...)
	}
	for _, dir := range dirs {
		if isExecutable(filepath.Join(dir, "initdb")) && isExecutable(filepath.Join(dir, "postgres")) {
			return dir, nil
		}
	}
	return "", MissingError{"postgresql"}
}

// redisBin is the path of redis-server, or of valkey-server, which speaks the same.
func redisBin() (string, error) {
	for _, name := range []string{"redis-server", "/opt/homebrew/bin/redis-server", "/usr/local/bin/redis-server", "valkey-server"} {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", MissingError{"redis-server"}
}

func isExecutable(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
}

// freePort is a port of 127.0.0.1 that was free a moment ago. Another process may take it first, so whoever starts
// a server on it tries again with the next one.
func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("stores: find a free port: %w", err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

// maxPortAttempts is how often a server is started on another port before giving up.
const maxPortAttempts = 3
