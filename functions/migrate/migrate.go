package migrate

import (
	"errors"
	"net/http"

	"github.com/go-json-experiment/json"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"

	"melmastoon.ghasi.io/bff-consumer/shared/migrations"
)

// Migrate is the entry point.
type Migrate struct {
	pool  *pgxpool.Pool
	users []string // database users with access to the schema
}

// Report is the response to a migration.
type Report struct {
	Newest  string   `json:"newest"`  // file of the newest applied migration
	Missing []string `json:"missing"` // users unknown to Postgres: call again after the creation of the users
}

// Serve applies the missing migrations, grants the schema to the users, and returns the Report with
// status 200. A call takes up to 55 min. Calls may be repeated; a concurrent call waits up to 5 min
// for the advisory lock of the migrations, on a connection of its own. Serve grants use of schema
// and sequences, and reading and writing of the present tables, in one to four statements for each
// user, without a transaction; Serve revokes nothing, and reports users unknown to Postgres in
// Missing.
//
// Serve returns an error, status 500, when a migration or a grant fails, Postgres is unavailable,
// the lock is not free in time, or the caller hangs up. Earlier migrations and grants stay applied
// then; call again.
func (m *Migrate) Serve(w http.ResponseWriter, r *http.Request) (err error) {
	db := stdlib.OpenDBFromPool(m.pool)
	defer func() { err = errors.Join(err, db.Close()) }() // the pool stays open
	if err := migrations.ApplyTo(r.Context(), db); err != nil {
		return err
	}
	report := Report{Newest: migrations.Newest()}
	if report.Missing, err = migrations.Grant(r.Context(), db, m.users); err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	return json.MarshalWrite(w, report)
}
