// Package migrations owns the Postgres schema as numbered, forward-only migrations; schema.sql is
// the whole schema for reading. A deployment applies the migrations first, through
// functions/migrate. No other function links the package.
package migrations

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	_ "github.com/jackc/pgx/v5/stdlib" // registers the driver "pgx"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"
)

// Files holds the migrations, NNNN_name.sql. A deployed migration is never edited; a later
// migration corrects it. Code must run on the schema before and after a migration, so that code and
// schema can be deployed in either order.
//
//go:embed [0-9]*.sql
var Files embed.FS

// versionTable records the applied migrations. It is outside the schema bff_consumer, because the
// first migration creates that schema.
const versionTable = "bff_consumer_migrations"

// Apply migrates the database at url ("postgres://…") to the newest version, and does nothing to a
// migrated database. Of several concurrent callers a single caller applies the migrations under a
// session advisory lock; the others try for the lock for at most 5 minutes (300 attempts, 1 s
// apart) or until ctx ends, and fail without the lock. Because of the lock, url must lead to
// Postgres and not to a pooler in transaction mode. A migration takes as long as its statements:
// ctx is the only limit.
//
// Each migration is a transaction. A failure, or the end of ctx, rolls back the running migration
// and leaves the earlier ones applied; the next Apply goes on from there. Errors are those of url,
// the connection, the lock, a migration, a missing older migration in the database, and closing the
// connection.
func Apply(ctx context.Context, url string) (err error) {
	db, err := sql.Open("pgx", url)
	if err != nil {
		return fmt.Errorf("migrations: open: %w", err)
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	return ApplyTo(ctx, db)
}

// ApplyTo is Apply for an open database: the same migrations, lock, waiting time of at most 5
// minutes and errors. ApplyTo takes a connection of db for the whole time and does not close db.
// After an error the earlier migrations stay applied.
func ApplyTo(ctx context.Context, db *sql.DB) error {
	locker, err := lock.NewPostgresSessionLocker(lock.WithLockTimeout(1, 300))
	if err != nil {
		return fmt.Errorf("migrations: lock: %w", err)
	}
	provider, err := goose.NewProvider(goose.DialectPostgres, db, Files,
		goose.WithSessionLocker(locker),
		goose.WithTableName(versionTable),
		goose.WithDisableGlobalRegistry(true),
	)
	if err != nil {
		return fmt.Errorf("migrations: read: %w", err)
	}
	if _, err := provider.Up(ctx); err != nil {
		return fmt.Errorf("migrations: apply: %w", err)
	}
	return nil
}

// Newest returns the file name of the last migration, "NNNN_name.sql", as embedded in the program.
// Newest does not read the database and never fails.
func Newest() string {
	steps, err := Files.ReadDir(".")
	if err != nil || len(steps) == 0 {
		panic("migrations: no files") // unreachable: the files are embedded
	}
	return steps[len(steps)-1].Name()
}

// Grant gives roles, one per function, USAGE of schema bff_consumer and its sequences, and SELECT,
// INSERT, UPDATE and DELETE on its tables. The grants cover the present tables and sequences; Grant
// revokes no earlier privilege. Grant skips and returns missing roles: a function's role is created
// with its first deployment, which may come later.
//
// Grant runs a statement for a missing role and four for an existing role, without a transaction;
// ctx is the only time limit. At the first error Grant stops and returns (nil, error); earlier
// grants stay, and a repetition is harmless. Do not run Grant concurrently: Postgres may reject
// simultaneous grants on a table.
func Grant(ctx context.Context, db *sql.DB, roles []string) (missing []string, err error) {
	for _, role := range roles {
		var exists bool
		if err := db.QueryRowContext(ctx, "SELECT EXISTS (SELECT FROM pg_roles WHERE rolname = $1)", role).Scan(&exists); err != nil {
			return nil, fmt.Errorf("migrations: look for %s: %w", role, err)
		}
		if !exists {
			missing = append(missing, role)
			continue
		}
		to := " TO " + pgx.Identifier{role}.Sanitize()
		for _, privilege := range []string{
			"USAGE ON SCHEMA bff_consumer",
			"SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA bff_consumer",
			"USAGE ON ALL SEQUENCES IN SCHEMA bff_consumer",
		} {
			if _, err := db.ExecContext(ctx, "GRANT "+privilege+to); err != nil {
				return nil, fmt.Errorf("migrations: grant %s to %s: %w", privilege, role, err)
			}
		}
	}
	return missing, nil
}
