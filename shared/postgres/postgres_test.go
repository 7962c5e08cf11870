package postgres

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"melmastoon.ghasi.io/bff-consumer/shared/testkit/pgtest"
)

func TestPostgresOpen_RejectsInvalidConfig(t *testing.T) {
	direct := func(spoil func(*Config)) Config {
		c := Config{Instance: "p:r:i", Address: "10.0.0.3:5432", ServerCA: newCertAuthority(t).pem, User: "u", Database: "d"}
		if pool, err := Open(t.Context(), c); err != nil {
			t.Fatal(err)
		} else {
			pool.Close()
		}
		spoil(&c)
		return c
	}
	for rule, c := range map[string]Config{
		"nothing":              {},
		"two places":           {URL: "postgres://h/d", Instance: "p:r:i", User: "u", Database: "d"},
		"not a URL":            {URL: "postgres://u:secret@h:port/d"},
		"instance without who": {Instance: "p:r:i", Database: "d"},
		"instance without db":  {Instance: "p:r:i", User: "u"},
		"no address":           direct(func(c *Config) { c.Address = "" }),
		"an address, no port":  direct(func(c *Config) { c.Address = "10.0.0.3" }),
		"not a port":           direct(func(c *Config) { c.Address = "10.0.0.3:postgres" }),
		"no authority":         direct(func(c *Config) { c.ServerCA = "" }),
		"not a certificate":    direct(func(c *Config) { c.ServerCA = "secret" }),
		"not an instance":      direct(func(c *Config) { c.Instance = "p:i" }),
		"half an instance":     direct(func(c *Config) { c.Instance = "p::i" }),
	} {
		t.Run(rule, func(t *testing.T) {
			pool, err := Open(t.Context(), c)
			if err == nil {
				pool.Close()
				t.Fatal("accepted")
			}
			if strings.Contains(err.Error(), "secret") {
				t.Errorf("the error has the password: %v", err)
			}
		})
	}
}

func TestPostgresOpen_DialsLazily(t *testing.T) {
	url, proxy := pgtest.ProxiedURL(t)
	proxy.Break()
	pool, err := Open(t.Context(), Config{URL: url + "&pool_min_conns=2"})
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	if n := pool.Stat().NewConnsCount(); n != 0 {
		t.Errorf("%d connections before anybody asked", n)
	}
	if err := pool.Ping(t.Context()); err == nil {
		t.Error("a broken database answers")
	}
	proxy.Heal()
	if err := pool.Ping(t.Context()); err != nil {
		t.Errorf("a healed database: %v", err)
	}
}

func TestPostgresOpen_HungDatabaseHonoursDeadline(t *testing.T) {
	url, proxy := pgtest.ProxiedURL(t)
	pool, err := Open(t.Context(), Config{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	proxy.Hang()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if err := pool.Ping(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("ping: %v, want the deadline", err)
	}
}

func TestPostgresOpen_PreparesStatementsUnlessURLDisables(t *testing.T) {
	url := pgtest.URL(t)
	for more, want := range map[string]int{"": 1, "&default_query_exec_mode=cache_describe": 0} {
		pool, err := Open(t.Context(), Config{URL: url + more, MaxConns: 1})
		if err != nil {
			t.Fatal(err)
		}
		defer pool.Close()
		for range 3 {
			var n int
			if err := pool.QueryRow(t.Context(), "SELECT $1::int", 7).Scan(&n); err != nil || n != 7 {
				t.Fatalf("%d %v", n, err)
			}
		}
		var prepared int
		err = pool.QueryRow(t.Context(), "SELECT count(*) FROM pg_prepared_statements WHERE statement LIKE $1", "SELECT $1::int%").Scan(&prepared)
		if err != nil || prepared != want {
			t.Errorf("%q: %d named statements in the session, want %d: %v", more, prepared, want, err)
		}
	}
}

// TestPostgresOpen_PreparedStatementsSurviveMigration says what steps cost a service that runs:
// those that widen cost nothing, alone or in a batch. One that changes the type of a column that is
// read is refused once by a connection, which is then worth another try, and has written nothing.
func TestPostgresOpen_PreparedStatementsSurviveMigration(t *testing.T) {
	url := pgtest.EmptyURL(t)
	pool, err := Open(t.Context(), Config{URL: url, MaxConns: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	deployer, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer deployer.Close(t.Context())
	step := func(sql string) {
		t.Helper()
		if _, err := deployer.Exec(t.Context(), sql); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
	rows := 0
	batched := func() error {
		var b pgx.Batch
		b.Queue("INSERT INTO trip (guests, place) VALUES ($1, $2)", 1, "Kabul")
		b.Queue("UPDATE trip SET guests = guests + $1", 1)
		return pool.SendBatch(t.Context(), &b).Close()
	}
	alone := func() error {
		var guests int64
		return pool.QueryRow(t.Context(), "INSERT INTO trip (guests, place) VALUES ($1, $2) RETURNING guests", 1, "Herat").Scan(&guests)
	}
	step("CREATE TABLE trip (guests smallint NOT NULL, place varchar(10), note text)")
	for _, widening := range []string{
		"SELECT", // nothing yet
		"ALTER TABLE trip ADD COLUMN paid boolean NOT NULL DEFAULT false",
		"CREATE INDEX ON trip (place)",
		"ALTER TABLE trip ALTER COLUMN place TYPE text",
		"ALTER TABLE trip ADD CHECK (guests > 0)",
		"ALTER TABLE trip DROP COLUMN note",
		"ANALYZE trip",
	} {
		step(widening)
		for _, mutate := range []func() error{batched, alone, batched, alone} {
			if err := mutate(); err != nil {
				t.Errorf("after %s: %v", widening, err)
			}
			rows++
		}
	}
	step("ALTER TABLE trip ALTER COLUMN guests TYPE bigint")
	for range 2 {
		if err := batched(); err != nil {
			t.Errorf("what reads nothing, after a change of type: %v", err)
		}
		rows++
	}
	if err := alone(); !IsUnavailable(err) {
		t.Errorf("what reads the column whose type changed: %v, want that it may be tried again", err)
	}
	if err := alone(); err != nil {
		t.Errorf("tried again: %v", err)
	}
	rows++
	var there int
	if err := deployer.QueryRow(t.Context(), "SELECT count(*) FROM trip").Scan(&there); err != nil || there != rows {
		t.Errorf("%d rows for %d mutations: %v", there, rows, err)
	}
}
