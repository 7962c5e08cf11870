// Package pgtest starts a real Postgres for tests and gives each test a database of its own. Only
// tests import it. It never changes a database that it did not create.
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
	"melmastoon.ghasi.io/bff-consumer/shared/testkit/localstores"
)

// startTimeout is the time for starting the server and creating the template, on a machine busy
// with other tests.
const startTimeout = time.Minute

// cluster is a server with a migrated database to clone.
type cluster struct{ url, template string }

// sharedCluster is the server of this test process, or the server of TEST_DATABASE_URL. The
// watchdog of localstores stops a private server at the end of the process, so no package needs a
// TestMain.
var sharedCluster = sync.OnceValues(func() (cluster, error) {
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	server := os.Getenv("TEST_DATABASE_URL")
	if server == "" {
		var err error
		if server, _, err = localstores.StartPostgres(ctx, "", localstores.PostgresOptions{}); err != nil {
			return cluster{}, err
		}
	}
	template, err := ensureTemplate(ctx, server)
	return cluster{server, template}, err
})

// New returns a pool on an empty, migrated database of this test's own. The end of the test closes
// the pool and drops the database. Tests may run in parallel.
func New(t testing.TB) *pgxpool.Pool {
	t.Helper()
	return Open(t, URL(t))
}

// URL returns the URL of a database like that of New, for code that opens and closes its own pool.
func URL(t testing.TB) string {
	t.Helper()
	c := requireCluster(t)
	return c.createDatabase(t, "TEMPLATE "+pgx.Identifier{c.template}.Sanitize())
}

// EmptyURL returns the URL of a database of this test's own without the schema.
func EmptyURL(t testing.TB) string {
	t.Helper()
	return requireCluster(t).createDatabase(t, "TEMPLATE template0")
}

// ProxiedURL is URL through a proxy that simulates network faults. Heal the proxy before closing a
// pool: closing a pool while the proxy hangs takes 15 s.
func ProxiedURL(t testing.TB) (string, *localstores.Proxy) {
	t.Helper()
	return ProxyTo(t, URL(t))
}

// ProxyTo returns another URL of the database at direct, through a new proxy; see ProxiedURL.
func ProxyTo(t testing.TB, direct string) (string, *localstores.Proxy) {
	t.Helper()
	by, err := url.Parse(direct)
	if err != nil {
		t.Fatal(err)
	}
	proxy, err := localstores.NewProxy(by.Host)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(proxy.Close)
	by.Host = proxy.Addr
	return by.String(), proxy
}

// Open returns a pool on the database at url, closed at the end of the test.
func Open(t testing.TB, url string) *pgxpool.Pool {
	t.Helper()
	pool, err := pgxpool.New(t.Context(), url)
	if err != nil {
		t.Fatalf("pgtest: open: %v", err)
	}
	t.Cleanup(pool.Close)
	return pool
}

// requireCluster returns the shared server. It skips the test if Postgres is not installed, except
// in CI, and fails the test for any other error.
func requireCluster(t testing.TB) cluster {
	t.Helper()
	c, err := sharedCluster()
	if err == nil {
		return c
	}
	if _, missing := errors.AsType[localstores.MissingError](err); missing && os.Getenv("CI") == "" {
		t.Skip(err)
	}
	t.Fatal(err)
	return c
}

// createDatabase creates a database, and drops it and its connections at the end of the test.
func (c cluster) createDatabase(t testing.TB, from string) string {
	t.Helper()
	name := "test_" + rand.Text()
	quoted := pgx.Identifier{name}.Sanitize()
	do := func(sql string) {
		ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
		defer cancel()
		if err := execute(ctx, c.url, sql); err != nil {
			t.Fatalf("pgtest: %v", err)
		}
	}
	// The default strategy since Postgres 15, a log of the copied pages, is cheaper than a
	// checkpoint.
	do("CREATE DATABASE " + quoted + " " + from)
	t.Cleanup(func() { do("DROP DATABASE " + quoted + " WITH (FORCE)") })
	return withDatabase(c.url, name)
}

// ensureTemplate creates the template database unless the server has it. The template's name is a
// digest of the migrations, so a permanent server keeps a template per schema.
func ensureTemplate(ctx context.Context, server string) (string, error) {
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
	// The lock ends with the connection. Only a complete template is marked as a template.
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
	if err := migrations.Apply(ctx, withDatabase(server, template)); err != nil {
		return "", err
	}
	if _, err := conn.Exec(ctx, "ALTER DATABASE "+quoted+" IS_TEMPLATE true ALLOW_CONNECTIONS false"); err != nil {
		return "", fmt.Errorf("pgtest: mark template: %w", err)
	}
	return template, nil
}

// execute runs a statement on a new connection.
func execute(ctx context.Context, url, sql string) error {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	_, err = conn.Exec(ctx, sql)
	return err
}

// withDatabase returns the server's URL with another database.
func withDatabase(server, name string) string {
	u, err := url.Parse(server)
	if err != nil {
		return server // unreachable: pgx has parsed it
	}
	u.Path = "/" + name
	return u.String()
}
