package main

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"melmastoon.ghasi.io/bff-consumer/local/runfile"
)

func TestDatabaseURL_UsesNamedStateDirectory(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	running, idle := t.TempDir(), t.TempDir()
	if err := runfile.Write(running, runfile.Run{URL: server.URL, Env: map[string]string{"DATABASE_URL": "postgres://of-the-server"}}); err != nil {
		t.Fatal(err)
	}
	noRoot := func() (string, error) { return idle, nil }
	for _, c := range []struct{ name, environment, state, want, wantErr string }{
		{"server with the state", "", running, "postgres://of-the-server", ""},
		{"no server with the state", "", idle, "", idle},
		{"no server in the repository", "", "", "", idle},
		{"environment", "postgres://of-the-shell", "", "postgres://of-the-shell", ""},
		{"state wins over environment", "postgres://of-the-shell", running, "postgres://of-the-server", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Setenv("DATABASE_URL", c.environment)
			got, err := databaseURL(c.state, noRoot)
			if got != c.want || (err == nil) != (c.wantErr == "") || err != nil && !strings.Contains(err.Error(), c.wantErr) {
				t.Errorf("databaseURL(%q) = %q, %v; want %q, error with %q", c.state, got, err, c.want, c.wantErr)
			}
		})
	}
	server.Close()
	if url, err := databaseURL(running, noRoot); err == nil || !strings.Contains(err.Error(), running) {
		t.Errorf("after the server stopped: %q, %v, want an error that names %s", url, err, running)
	}
}
