// Package migrations owns the schema of Postgres, step by step and forward only; schema.sql is the whole of it for
// reading. It never runs inside a deployed function: whoever deploys applies it first.
package migrations

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver "pgx"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"
)

// Files are the steps, NNNN_name.sql. A step that has been deployed is never edited; another one corrects it. Code
// runs on the schema before and after a step, so that neither has to be deployed first.
//
//go:embed [0-9]*.sql
var Files embed.FS

// versions is the table of applied steps. It is outside the schema, which only the first step makes.
const versions = "bff_consumer_migrations"

// Apply brings the database at url, "postgres://…", to the newest step. Of several callers at once one applies and
// the others wait for it, for as long as ctx lets them. The lock belongs to the session, so url must lead to Postgres
// itself and not to a transaction pooler.
func Apply(ctx context.Context, url string) (err error) {
	db, err := sql.Open("pgx", url)
	if err != nil {
		return fmt.Errorf("migrations: open: %w", err)
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	locker, err := lock.NewPostgresSessionLocker(lock.WithLockTimeout(1, 300))
	if err != nil {
		return fmt.Errorf("migrations: lock: %w", err)
	}
	provider, err := goose.NewProvider(goose.DialectPostgres, db, Files,
		goose.WithSessionLocker(locker),
		goose.WithTableName(versions),
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
