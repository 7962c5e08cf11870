// Package lock orders the transactions of one session in Postgres by an advisory lock: an exclusive
// transaction runs alone, shared ones run in parallel. It is a package of its own because some of
// its users (idempotency) do not know sessions. It never reads or writes a row.
package lock

import (
	"errors"

	"github.com/jackc/pgx/v5"
)

// ErrCleared means that the guest cleared the session: while the request ran, or in an erasure that
// died half-way.
var ErrCleared = errors.New("session: cleared meanwhile")

// Exclusive queues the exclusive lock of a session. It must be the first statement of the batch.
// The transaction then waits for every other one of the session that took the lock, and later ones
// wait for its commit; the wait is bounded by the context of the batch alone. The lock ends with
// the transaction, so it works through a connection pooler.
func Exclusive(batch *pgx.Batch, sessionID string) {
	batch.Queue(`SELECT pg_advisory_xact_lock(hashtextextended($1, 0))`, sessionID)
}

// Shared queues the shared lock of a session. It must be the first statement of the batch. The
// transaction runs in parallel with other Shared ones and waits for an Exclusive one; the wait is
// bounded by the context of the batch alone.
func Shared(batch *pgx.Batch, sessionID string) {
	batch.Queue(`SELECT pg_advisory_xact_lock_shared(hashtextextended($1, 0))`, sessionID)
}
