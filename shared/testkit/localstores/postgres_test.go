package localstores

import (
	"context"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"
)

func requirePostgres(t *testing.T) {
	t.Helper()
	if _, err := PostgresBin(); err != nil {
		skipOrFail(t, err)
	}
}

// worldAccessibleDir is a temporary directory that anybody can reach: t.TempDir is below one that
// only we can.
func worldAccessibleDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "stores-test-")
	if err == nil {
		err = os.Chmod(dir, 0o777|os.ModeSticky)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// execSQL runs one statement on a connection of its own.
func execSQL(ctx context.Context, url, sql string) error {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	_, err = conn.Exec(ctx, sql)
	return err
}

func TestStartPostgres_KeepsDataAfterStopAndKill(t *testing.T) {
	t.Parallel()
	requirePostgres(t)
	dir := worldAccessibleDir(t)
	url, stop, err := StartPostgres(t.Context(), dir, PostgresOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := execSQL(t.Context(), url, "CREATE TABLE stopped ()"); err != nil {
		t.Fatal(err)
	}
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	if err := execSQL(t.Context(), url, "SELECT 1"); err == nil {
		t.Error("it answers after its stop")
	}

	process, url := startOwner(t, "postgres", dir)
	if err := execSQL(t.Context(), url, "CREATE TABLE killed ()"); err != nil {
		t.Fatal(err)
	}
	process.Process.Kill()
	process.Wait()

	// at once: the old one may still be stopping
	url, stop, err = StartPostgres(t.Context(), dir, PostgresOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	if err := execSQL(t.Context(), url, "TABLE stopped; TABLE killed"); err != nil {
		t.Error(err)
	}
}

func TestStartPostgres_RecoversFromCrash(t *testing.T) {
	t.Parallel()
	requirePostgres(t)
	dir := worldAccessibleDir(t)
	_, stop, err := StartPostgres(t.Context(), dir, PostgresOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	// As after a power cut: a pid file that names a process which lives but is no Postgres, and
	// half an initdb.
	stale := filepath.Join(dir, "data", "postmaster.pid")
	if err := os.WriteFile(stale, []byte("1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(dir, "data.new", "base"), 0o700); err != nil {
		t.Fatal(err)
	}
	url, stop, err := StartPostgres(t.Context(), dir, PostgresOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	if err := execSQL(t.Context(), url, "SELECT 1"); err != nil {
		t.Error(err)
	}
}

func TestStartPostgres_TemporaryDirectoryIsRemoved(t *testing.T) {
	requirePostgres(t)
	temp := worldAccessibleDir(t)
	t.Setenv("TMPDIR", temp)
	process, url := startOwner(t, "postgres", "")
	found, _ := filepath.Glob(filepath.Join(temp, "bff-consumer-postgres-*"))
	if len(found) != 1 {
		t.Fatalf("%d directories, want 1", len(found))
	}
	lock, err := os.Open(filepath.Join(found[0], "server.lock")) // outlives the removal
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	process.Process.Kill()
	process.Wait()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil { // until the watchdog is done
		t.Fatal(err)
	}
	if err := execSQL(t.Context(), url, "SELECT 1"); err == nil {
		t.Error("Postgres outlived its owner")
	}
	if _, err := os.Stat(found[0]); !os.IsNotExist(err) {
		t.Errorf("its directory: %v, want none", err)
	}
}

func TestStartPostgres_RootRelocatesUnreachableDirectory(t *testing.T) {
	requirePostgres(t)
	if os.Geteuid() != 0 {
		t.Skip("only root has to become somebody else")
	}
	temp := worldAccessibleDir(t)
	closed := t.TempDir() // below a directory that is ours alone
	t.Setenv("TMPDIR", temp)
	_, stop, err := StartPostgres(t.Context(), closed, PostgresOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	if found, _ := filepath.Glob(filepath.Join(temp, "bff-consumer-postgres-*/data/PG_VERSION")); len(found) != 1 {
		t.Errorf("%d clusters in the temporary directory, want 1", len(found))
	}
}
