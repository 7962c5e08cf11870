package postgres

import (
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"melmastoon.ghasi.io/bff-consumer/shared/testkit/pgtest"
)

// newContendedTable is a table of two rows, which everybody wants.
func newContendedTable(t *testing.T) *pgxpool.Pool {
	t.Helper()
	db := pgtest.New(t)
	if _, err := db.Exec(t.Context(), "CREATE TABLE contested AS SELECT id, 0 AS n FROM generate_series(1, 2) AS id"); err != nil {
		t.Fatal(err)
	}
	return db
}

// beginTx opens a transaction that ends with the test.
func beginTx(t *testing.T, db *pgxpool.Pool, isolation pgx.TxIsoLevel, settings ...string) pgx.Tx {
	t.Helper()
	tx, err := db.BeginTx(t.Context(), pgx.TxOptions{IsoLevel: isolation})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tx.Rollback(t.Context()) })
	for _, set := range settings {
		if _, err := tx.Exec(t.Context(), set); err != nil {
			t.Fatal(err)
		}
	}
	return tx
}

func updateRow(t *testing.T, tx pgx.Tx, id int) error {
	_, err := tx.Exec(t.Context(), "UPDATE contested SET n = n + 1 WHERE id = $1", id)
	return err
}

func TestIsContention_CoversLockTimeoutDeadlockAndSerialization(t *testing.T) {
	for name, clash := range map[string]func(*testing.T, *pgxpool.Pool) error{
		"a lock that was not granted in time": func(t *testing.T, db *pgxpool.Pool) error {
			if err := updateRow(t, beginTx(t, db, pgx.ReadCommitted), 1); err != nil {
				t.Fatal(err)
			}
			return updateRow(t, beginTx(t, db, pgx.ReadCommitted, "SET LOCAL lock_timeout = '1ms'"), 1)
		},
		"a deadlock": func(t *testing.T, db *pgxpool.Pool) error {
			// The first waits for ever, so it is the second that finds the circle, whoever of the
			// two waits first.
			one := beginTx(t, db, pgx.ReadCommitted, "SET LOCAL deadlock_timeout = '1h'")
			two := beginTx(t, db, pgx.ReadCommitted, "SET LOCAL deadlock_timeout = '1ms'")
			if err := updateRow(t, one, 1); err != nil {
				t.Fatal(err)
			}
			if err := updateRow(t, two, 2); err != nil {
				t.Fatal(err)
			}
			waited := make(chan error, 1)
			go func() { waited <- updateRow(t, one, 2) }()
			pgtest.AwaitLockWait(t, db)
			err := updateRow(t, two, 1)
			if err := <-waited; err != nil {
				t.Error(err)
			}
			return err
		},
		"no serial order": func(t *testing.T, db *pgxpool.Pool) error {
			late := beginTx(t, db, pgx.RepeatableRead, "SELECT FROM contested")
			if _, err := db.Exec(t.Context(), "UPDATE contested SET n = n + 1 WHERE id = 1"); err != nil {
				t.Fatal(err)
			}
			return updateRow(t, late, 1)
		},
	} {
		t.Run(name, func(t *testing.T) {
			if err := clash(t, newContendedTable(t)); !IsContention(err) || !IsUnavailable(err) {
				t.Errorf("%v", err)
			}
		})
	}
}
