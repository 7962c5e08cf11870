package server

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"melmastoon.ghasi.io/bff-consumer/local/pubsub"
	"melmastoon.ghasi.io/bff-consumer/local/runfile"
	"melmastoon.ghasi.io/bff-consumer/shared/keyring"
	"melmastoon.ghasi.io/bff-consumer/shared/testkit/redistest"
)

func TestDeleteLocalKeys_KeepsOtherEnvironments(t *testing.T) {
	rdb := redistest.New(t)
	addr := redistest.Addr(t)
	fill := func() {
		for _, key := range []string{"local:bff-consumer:search:1", "local:bff-consumer:session:{gms_1}", "prod:bff-consumer:search:1", "other"} {
			if err := rdb.Set(t.Context(), key, "x", 0).Err(); err != nil {
				t.Fatal(err)
			}
		}
	}
	left := func() int64 { return rdb.DBSize(t.Context()).Val() }
	fill()
	t.Setenv("ENVIRONMENT", "prod")
	if err := deleteLocalKeys(t.Context(), addr); err != nil || left() != 4 {
		t.Errorf("other environment: got %d keys left, error %v, want 4", left(), err)
	}
	t.Setenv("ENVIRONMENT", "")
	if err := deleteLocalKeys(t.Context(), addr); err != nil || left() != 2 {
		t.Errorf("environment local: got %d keys left, error %v, want 2", left(), err)
	}
	if err := deleteLocalKeys(t.Context(), "127.0.0.1:1"); err == nil {
		t.Error("unreachable Redis: got no error")
	}
}

func TestLoadSecrets_ReusesExistingFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "secrets.json")
	first, err := loadSecrets(path)
	if err != nil {
		t.Fatal(err)
	}
	again, err := loadSecrets(path)
	if err != nil || !maps.Equal(first, again) {
		t.Errorf("got %v, then %v, error %v, want equal", first, again, err)
	}
	for name, ring := range first {
		if _, err := keyring.Parse(ring); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("got file mode %v, error %v, want 0600", info.Mode(), err)
	}
	if err := os.WriteFile(path, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := loadSecrets(path); err == nil {
		t.Error("broken file: got no error")
	}
}

func TestFunctionEnv_ExplicitVariablesWin(t *testing.T) {
	t.Setenv("ENVIRONMENT", "mine")
	t.Setenv("SEARCH_URL", "")
	state := t.TempDir()
	env, err := functionEnv(state, dataStores{database: "postgres://x", redis: "r:1"}, &pubsub.Broker{Host: "p:1", Project: "p"}, map[string]string{"search": "http://s"}, "flags.json")
	if err != nil || env["ENVIRONMENT"] != "mine" || env["REDIS_ADDR"] != "r:1" || env["SEARCH_URL"] != "http://s" ||
		env["PUBSUB_EMULATOR_HOST"] != "p:1" || env["PUBSUB_PROJECT"] != "p" {
		t.Errorf("got %v, error %v", env, err)
	}
	if err := runfile.Write(state, runfile.Run{PID: os.Getpid(), URL: "http://x", Env: env}); err != nil {
		t.Fatal(err)
	}
	t.Setenv("REDIS_ADDR", "mine:2")
	inherited, err := inheritedEnv(state)
	if _, found := inherited["REDIS_ADDR"]; err != nil || found || inherited["SEARCH_URL"] != "http://s" {
		t.Errorf("inherited: got %v, error %v, want SEARCH_URL without REDIS_ADDR", slices.Sorted(maps.Keys(inherited)), err)
	}
	runfile.Remove(state)
	if _, ok := runfile.Read(state); ok {
		t.Error("run.json exists after Remove")
	}
}

func TestPostgresDir_MovesWhenParentIsClosed(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root hands Postgres to another user")
	}
	open := t.TempDir()
	if err := os.Chmod(filepath.Dir(open), 0o755); err != nil { // t.TempDir is private to this user
		t.Fatal(err)
	}
	if dir, err := postgresDir(open); err != nil || dir != filepath.Join(open, "postgres") {
		t.Errorf("%s %v", dir, err)
	}
	closed := filepath.Join(open, "closed")
	if err := os.Mkdir(closed, 0o700); err != nil {
		t.Fatal(err)
	}
	dir, err := postgresDir(closed)
	if err != nil || filepath.Dir(filepath.Dir(dir)) != "/var/tmp" {
		t.Errorf("%s %v", dir, err)
	}
	os.Remove(filepath.Dir(dir))
}
