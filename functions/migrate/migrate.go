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
	users []string // of Postgres, who may use what the steps make
}

// Report is what was done.
type Report struct {
	Newest  string   `json:"newest"`  // file of the step the schema is at
	Missing []string `json:"missing"` // users that Postgres does not know yet: call again when they are made
}

// Serve applies the steps that are missing. It may be called again, and by several at once; one that failed half way leaves
// the steps that succeeded.
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
