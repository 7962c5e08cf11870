// Package migrations owns the schema of Postgres, step by step and forward only; schema.sql is the whole of it for
// reading. Whoever deploys applies it first, by functions/migrate; no function that serves anybody else has it.
package migrations

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	_ "github.com/jackc/pgx/v5/stdlib" // the driver "pgx"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"
)

// Files are the steps, NNNN_name.sql. A step that has been deployed is never edited; another one corrects it. Code
// runs on the schema before and after a step, so that neither has to be deployed first.
//
//go:embed [0-9]*.sql
var Files embed.FS

// versionTable is the table of applied steps. It is outside the schema, which only the first step makes.
const versionTable = "bff_consumer_migrations"

// Apply brings the database at url, "postgres://…", to the newest step. Of several callers at once one applies and
// the others wait for it, for as long as ctx lets them. The lock belongs to the session, so url must lead to Postgres
// itself and not to a transaction pooler.
func Apply(ctx context.Context, url string) (err error) {
	db, err := sql.Open("pgx", url)
	if err != nil {
		return fmt.Errorf("migrations: open: %w", err)
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	return ApplyTo(ctx, db)
}

// ApplyTo is Apply for a database that is open.
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

// Newest is the file of the last step.
func Newest() string {
	steps, err := Files.ReadDir(".")
	if err != nil || len(steps) == 0 {
		panic("migrations: no steps") // unreachable: they are part of the program
	}
	return steps[len(steps)-1].Name()
}

// Grant lets roles of Postgres, one for each function, read and write what the steps have made, and nothing else. It names those that there
// are none of: a function's role is made where it is first deployed, which may be later.
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
		for _, what := range []string{
			"USAGE ON SCHEMA bff_consumer",
			"SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA bff_consumer",
			"USAGE ON ALL SEQUENCES IN SCHEMA bff_consumer",
		} {
			if _, err := db.ExecContext(ctx, "GRANT "+what+to); err != nil {
				return nil, fmt.Errorf("migrations: grant %s to %s: %w", what, role, err)
			}
		}
	}
	return missing, nil
}
