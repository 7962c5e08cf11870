// Package localstores owns the private Postgres and Redis servers of the development server and of
// the tests. It finds the installed programs, starts them as children, and stops them at the end of
// the owning process. It never connects to a server of another process.
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

// MissingError reports a server that is not installed. The text has the installation command.
type MissingError struct{ Package string } // name in Debian: "postgresql" or "redis-server"

func (e MissingError) Error() string {
	command := "apt-get install " + e.Package
	if runtime.GOOS == "darwin" {
		command = "brew install " + map[string]string{"postgresql": "postgresql@15", "redis-server": "redis"}[e.Package]
	}
	return fmt.Sprintf("localstores: %s is not installed: run %q", e.Package, command)
}

// PostgresBin returns the directory with initdb, postgres and pg_dump: PGBIN if set, otherwise the
// directory of the newest installed version. Debian and Homebrew keep the servers off the PATH. It
// returns a MissingError if there is no server.
func PostgresBin() (string, error) {
	if dir := os.Getenv("PGBIN"); dir != "" {
		return dir, nil
	}
	var dirs []string
	if path, err := exec.LookPath("initdb"); err == nil {
		// postgres need not stand beside a symbolic link
		if path, err = filepath.EvalSymlinks(path); err == nil {
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

// redisBin returns the path of redis-server or of the compatible valkey-server, or a MissingError.
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

// freePort returns a port of 127.0.0.1 that was free a moment ago. Another process may take the
// port first, so callers start their server again on another port.
func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("localstores: find a free port: %w", err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

// maxPortAttempts is the number of ports tried for a server.
const maxPortAttempts = 3
