// Package runfile owns run.json, the file by which a running development server tells other
// processes its address and the environment of its functions. The package starts and stops nothing.
package runfile

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"time"
)

// Run is the content of run.json.
type Run struct {
	PID int               `json:"pid"` // of the development server
	URL string            `json:"url"` // of its gateway
	Env map[string]string `json:"env"` // of its functions; holds secrets
}

// Path returns the path of run.json in a state directory.
func Path(state string) string { return filepath.Join(state, "run.json") }

// Write replaces run.json atomically. Only the current user may read the file.
func Write(state string, r Run) error { return WriteJSON(Path(state), r) }

// Read reads run.json. ok is false when the file is missing or is not JSON.
func Read(state string) (r Run, ok bool) {
	text, err := os.ReadFile(Path(state))
	return r, err == nil && json.Unmarshal(text, &r) == nil
}

// Remove deletes run.json if this process wrote it. A file of another process stays.
func Remove(state string) {
	if r, ok := Read(state); ok && r.PID == os.Getpid() {
		os.Remove(Path(state))
	}
}

// IsRunning reports whether a server answers HTTP at r.URL within one second, whatever the answer.
func (r Run) IsRunning() bool {
	client := http.Client{Timeout: time.Second}
	res, err := client.Get(r.URL + "/_local/healthz")
	if err != nil {
		return false
	}
	res.Body.Close()
	return true
}

// WriteJSON replaces a file atomically with value as indented JSON. Only the current user may read
// the file.
func WriteJSON(path string, value any) error {
	text, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return err
	}
	half := path + ".new"
	if err := os.WriteFile(half, append(text, '\n'), 0o600); err != nil {
		return err
	}
	return os.Rename(half, path)
}
