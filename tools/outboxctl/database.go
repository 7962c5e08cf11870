package main

import (
	"fmt"
	"os"
	"path/filepath"

	"melmastoon.ghasi.io/bff-consumer/local/runfile"
)

// databaseURL returns DATABASE_URL unless state is set. Otherwise it returns the database of the
// development server with the state directory; an empty state means .local in the repository
// (root). The function fails when no such server answers HTTP
// within one second.
func databaseURL(state string, root func() (string, error)) (string, error) {
	if url := os.Getenv("DATABASE_URL"); url != "" && state == "" {
		return url, nil
	}
	if state == "" {
		dir, err := root()
		if err != nil {
			return "", err
		}
		state = filepath.Join(dir, ".local")
	}
	state, err := filepath.Abs(state)
	if err != nil {
		return "", err
	}
	running, ok := runfile.Read(state)
	if !ok || !running.IsRunning() {
		return "", fmt.Errorf("no development server runs with the state %s: start one with ./dev run, name another --state, or set DATABASE_URL", state)
	}
	return running.Env["DATABASE_URL"], nil
}
