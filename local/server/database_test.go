package server

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestDatabaseURL_UsesNamedStateDirectory(t *testing.T) {
	t.Setenv("DATABASE_URL", "")
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	runs, idle := t.TempDir(), t.TempDir()
	if err := writeJSON(runPath(runs), runInfo{URL: server.URL, Env: map[string]string{"DATABASE_URL": "postgres://its"}}); err != nil {
		t.Fatal(err)
	}
	if url, err := DatabaseURL(Options{State: runs}); err != nil || url != "postgres://its" {
		t.Errorf("%q, %v", url, err)
	}
	if url, err := DatabaseURL(Options{State: idle}); err == nil || !strings.Contains(err.Error(), idle) {
		t.Errorf("%q, %v", url, err)
	}
	t.Setenv("DATABASE_URL", "postgres://of-the-shell")
	if url, err := DatabaseURL(Options{Root: idle}); err != nil || url != "postgres://of-the-shell" {
		t.Errorf("%q, %v", url, err)
	}
	if url, err := DatabaseURL(Options{State: runs}); err != nil || url != "postgres://its" {
		t.Errorf("a state that is named does not count: %q, %v", url, err)
	}
	server.Close()
	if url, err := DatabaseURL(Options{State: runs}); err == nil || !strings.Contains(err.Error(), runs) {
		t.Errorf("of a system that ended: %q, %v", url, err)
	}
}
