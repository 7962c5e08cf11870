package pgtest

import (
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
)

// AwaitLockWait returns when a connection waits for a lock in the database of db. It polls without
// a pause until the end of the test.
func AwaitLockWait(t testing.TB, db *pgxpool.Pool) {
	t.Helper()
	for waiting := false; !waiting; {
		err := db.QueryRow(t.Context(), `
			SELECT EXISTS (
				SELECT
				FROM pg_stat_activity
				WHERE datname = current_database()
				  AND wait_event_type = 'Lock')`).Scan(&waiting)
		if err != nil {
			t.Fatal(err)
		}
	}
}
