// Package servertest starts a development server for a test and sends requests as a guest, as
// Pub/Sub and as a developer do. Only tests use the package. The package never reads the server's
// stores.
package servertest

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	_ "melmastoon.ghasi.io/bff-consumer/local/functions"
	"melmastoon.ghasi.io/bff-consumer/local/repository"
	"melmastoon.ghasi.io/bff-consumer/local/runfile"
	"melmastoon.ghasi.io/bff-consumer/local/server"
	"melmastoon.ghasi.io/bff-consumer/shared/testkit/localstores"
	"melmastoon.ghasi.io/bff-consumer/shared/testkit/pgtest"
	"melmastoon.ghasi.io/bff-consumer/shared/testkit/redistest"
)

// Root returns the repository's directory. Outside a repository Root ends the test.
func Root(t *testing.T) string {
	t.Helper()
	root, err := repository.Find()
	if err != nil {
		t.Fatal(err)
	}
	return root
}

// StateDir returns a temporary state directory that every user can reach: when root runs the tests,
// Postgres runs as another user.
func StateDir(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, open := range []string{filepath.Dir(dir), dir} {
		if err := os.Chmod(open, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// Start runs a development server with the state directory dir until the test ends. Its database is
// a new clone of the migrated template of this test process, and its Redis is the emptied Redis of
// this test process: Start takes about a second less than StartPrivate. Rate limits and bot
// detection are off, because a test is a single client with many requests.
//
// Start sets environment variables, so the test cannot be parallel, and a process can run one
// server at a time. Where Postgres or Redis is not installed, Start skips the test; with CI set the
// test fails.
func Start(t *testing.T, dir string) *server.Server {
	t.Helper()
	redistest.New(t) // empties Redis
	return start(t, server.Options{State: dir}, pgtest.URL(t), redistest.Addr(t))
}

// StartPrivate is Start with a Postgres and a Redis of the server's own, as ./dev run starts them.
// A second server with the same directory continues with the same data.
func StartPrivate(t *testing.T, dir string) *server.Server {
	t.Helper()
	return start(t, server.Options{State: dir}, "", "")
}

// StartDataset is Start with a file of accommodations.
func StartDataset(t *testing.T, file string) *server.Server {
	t.Helper()
	redistest.New(t)
	return start(t, server.Options{State: StateDir(t), Dataset: file}, pgtest.URL(t), redistest.Addr(t))
}

func start(t *testing.T, o server.Options, database, redis string) *server.Server {
	t.Helper()
	for name, value := range map[string]string{
		"DATABASE_URL": database, "REDIS_ADDR": redis, "PUBSUB_EMULATOR_HOST": "", "PUBSUB_PROJECT": "",
	} {
		t.Setenv(name, value)
	}
	o.Root, o.Out = Root(t), io.Discard
	s, err := server.Start(t.Context(), o)
	SkipIfMissing(t, err)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Stop)
	SetFlags(t, s, `{"limitsEnabled":false,"botMode":"off"}`)
	return s
}

// SkipIfMissing skips the test when err says that a store is not installed. With CI set the
// function does nothing, so that the test fails.
func SkipIfMissing(t *testing.T, err error) {
	t.Helper()
	if missing, ok := errors.AsType[localstores.MissingError](err); ok && os.Getenv("CI") == "" {
		t.Skip(missing)
	}
}

// SetFlags changes feature flags of the server. document is the body of PUT /_local/flags.
func SetFlags(t *testing.T, s *server.Server, document string) {
	t.Helper()
	if res, answer := Call(t, http.MethodPut, s.URL+"/_local/flags", document); res.StatusCode != http.StatusOK {
		t.Fatalf("PUT /_local/flags %s: %d %v", document, res.StatusCode, answer)
	}
}

// FunctionEnv returns the environment that the development server with the state directory gives
// its functions, without VALIDATE_EVENTS: deployed programs do not contain the event schemas.
func FunctionEnv(t *testing.T, state string) map[string]string {
	t.Helper()
	run, ok := runfile.Read(state)
	if !ok {
		t.Fatalf("no %s", runfile.Path(state))
	}
	delete(run.Env, "VALIDATE_EVENTS")
	return run.Env
}

// Eventually calls holds every 20 ms until the result is true. After 30 s Eventually ends the
// test.
func Eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	for again := time.Tick(20 * time.Millisecond); !holds(); {
		select {
		case <-again:
		case <-ctx.Done():
			t.Fatalf("not within 30 s: %s", what)
		}
	}
}

// TelemetryMessages publishes all committed events and returns the messages of one subject's topic,
// or of all topics when subject is empty. The function repeats both until there are least messages
// or more.
func TelemetryMessages(t *testing.T, s *server.Server, subject string, least int) (messages []map[string]any) {
	t.Helper()
	Eventually(t, "telemetry messages of "+subject, func() bool {
		if res, answer := Call(t, http.MethodPost, s.URL+"/_local/jobs/relay", "{}"); res.StatusCode != http.StatusOK {
			t.Logf("relay: %d %v", res.StatusCode, answer)
			return false
		}
		messages = nil
		_, answer := Call(t, http.MethodGet, s.URL+"/_local/telemetry?subject="+subject, "")
		for _, m := range answer["messages"].([]any) {
			messages = append(messages, m.(map[string]any))
		}
		return len(messages) >= least
	})
	return messages
}
