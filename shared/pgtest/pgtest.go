// Package pgtest owns the real Postgres that tests run against; only tests import it. It never touches a database
// that it did not make.
package pgtest

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"melmastoon.ghasi.io/bff-consumer/shared/migrations"
	"melmastoon.ghasi.io/bff-consumer/shared/stores"
)

// startWithin is how long the server and its template may take, on a machine busy with other tests.
const startWithin = time.Minute

// cluster is a server with a migrated database to clone.
type cluster struct{ url, template string }

// shared is the server of this test process, or the one of TEST_DATABASE_URL. Nothing stops a private one: it ends
// with the process, however that ends, by stores' watchdog; so no package needs a TestMain.
var shared = sync.OnceValues(func() (cluster, error) {
	ctx, cancel := context.WithTimeout(context.Background(), startWithin)
	defer cancel()
	server := os.Getenv("TEST_DATABASE_URL")
	if server == "" {
		var err error
		if server, _, err = stores.StartPostgres(ctx, "", stores.PostgresOptions{}); err != nil {
			return cluster{}, err
		}
	}
	template, err := migrated(ctx, server)
	return cluster{server, template}, err
})

// New is a pool on a database of this test's own, migrated and empty. Both go at the test's end. Tests may run in
// parallel.
func New(t testing.TB) *pgxpool.Pool {
	t.Helper()
	return Open(t, URL(t))
}

// URL is that of a database of this test's own, for code that opens it itself and closes it before the test ends.
func URL(t testing.TB) string {
	t.Helper()
	c := need(t)
	return c.create(t, "TEMPLATE "+pgx.Identifier{c.template}.Sanitize())
}

// Blank is the URL of a database of this test's own without our schema.
func Blank(t testing.TB) string {
	t.Helper()
	return need(t).create(t, "TEMPLATE template0")
}

// Behind is the URL of a database of this test's own by way of a proxy, which can take it away. A pool that is closed
// while the proxy hangs waits 15 s for its goodbyes, so heal it first.
func Behind(t testing.TB) (string, *stores.Proxy) {
	t.Helper()
	return Through(t, URL(t))
}

// Through is another URL of the database at direct, by way of a proxy as that of Behind.
func Through(t testing.TB, direct string) (string, *stores.Proxy) {
	t.Helper()
	by, err := url.Parse(direct)
	if err != nil {
		t.Fatal(err)
	}
	proxy, err := stores.NewProxy(by.Host)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(proxy.Close)
	by.Host = proxy.Addr
	return by.String(), proxy
}

// Open is a pool on a database of this test's own, closed at the test's end.
func Open(t testing.TB, url string) *pgxpool.Pool {
	t.Helper()
	pool, err := pgxpool.New(t.Context(), url)
	if err != nil {
		t.Fatalf("pgtest: open: %v", err)
	}
	t.Cleanup(pool.Close)
	return pool
}

// need is the shared server. Absent on a laptop means skip, absent in CI means fail; a server that is there and does
// not start always fails.
func need(t testing.TB) cluster {
	t.Helper()
	c, err := shared()
	if err == nil {
		return c
	}
	if _, missing := errors.AsType[stores.ErrMissing](err); missing && os.Getenv("CI") == "" {
		t.Skip(err)
	}
	t.Fatal(err)
	return c
}

// create makes a database and drops it at the test's end, with whatever is still connected to it.
func (c cluster) create(t testing.TB, from string) string {
	t.Helper()
	name := "test_" + rand.Text()
	quoted := pgx.Identifier{name}.Sanitize()
	do := func(sql string) {
		ctx, cancel := context.WithTimeout(context.Background(), startWithin)
		defer cancel()
		if err := execute(ctx, c.url, sql); err != nil {
			t.Fatalf("pgtest: %v", err)
		}
	}
	// A log of the copied pages is cheaper here than the checkpoint of the other strategy, and is 15's default.
	do("CREATE DATABASE " + quoted + " " + from)
	t.Cleanup(func() { do("DROP DATABASE " + quoted + " WITH (FORCE)") })
	return inDatabase(c.url, name)
}

// migrated makes the template on the server, unless another process has: its name is a digest of the migrations, so
// on a lasting server it is made once per schema.
func migrated(ctx context.Context, server string) (string, error) {
	digest := sha256.New()
	names, err := fs.Glob(migrations.Files, "*.sql")
	if err != nil {
		return "", err
	}
	for _, name := range names {
		text, err := migrations.Files.ReadFile(name)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(digest, "%s %d\n%s", name, len(text), text)
	}
	template := fmt.Sprintf("template_%x", digest.Sum(nil)[:8])
	quoted := pgx.Identifier{template}.Sanitize()

	conn, err := pgx.Connect(ctx, server)
	if err != nil {
		return "", fmt.Errorf("pgtest: connect: %w", err)
	}
	defer conn.Close(context.WithoutCancel(ctx))
	// The lock goes with the connection. Only a finished template is marked as one.
	if _, err := conn.Exec(ctx, "SELECT pg_advisory_lock(hashtext('pgtest'))"); err != nil {
		return "", fmt.Errorf("pgtest: lock: %w", err)
	}
	var done bool
	err = conn.QueryRow(ctx, "SELECT count(*) = 1 FROM pg_database WHERE datname = $1 AND datistemplate", template).Scan(&done)
	if err != nil || done {
		return template, err
	}
	for _, sql := range []string{"DROP DATABASE IF EXISTS " + quoted + " WITH (FORCE)", "CREATE DATABASE " + quoted} {
		if _, err := conn.Exec(ctx, sql); err != nil {
			return "", fmt.Errorf("pgtest: make template: %w", err)
		}
	}
	if err := migrations.Apply(ctx, inDatabase(server, template)); err != nil {
		return "", err
	}
	if _, err := conn.Exec(ctx, "ALTER DATABASE "+quoted+" IS_TEMPLATE true ALLOW_CONNECTIONS false"); err != nil {
		return "", fmt.Errorf("pgtest: mark template: %w", err)
	}
	return template, nil
}

func execute(ctx context.Context, url, sql string) error {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	_, err = conn.Exec(ctx, sql)
	return err
}

// inDatabase is server's URL with another database.
func inDatabase(server, name string) string {
	u, err := url.Parse(server)
	if err != nil {
		return server // unreachable: pgx has parsed it
	}
	u.Path = "/" + name
	return u.String()
}
