package pgtest

import (
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
)

// AwaitLockWait returns once somebody waits for a lock in the database of db.
func AwaitLockWait(t testing.TB, db *pgxpool.Pool) {
	t.Helper()
	for somebody := false; !somebody; {
		err := db.QueryRow(t.Context(), `
			SELECT EXISTS (
				SELECT
				FROM pg_stat_activity
				WHERE datname = current_database()
				  AND wait_event_type = 'Lock')`).Scan(&somebody)
		if err != nil {
			t.Fatal(err)
		}
	}
}
