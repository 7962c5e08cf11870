// Package lock orders the transactions of a session in Postgres by an advisory lock: an exclusive
// transaction runs alone, shared transactions run in parallel. Package idempotency uses lock
// without package session, because idempotency does not know sessions. Package lock reads and
// writes no row.
package lock

import (
	"errors"

	"github.com/jackc/pgx/v5"
)

// ErrCleared means that the guest cleared the session: while the request ran, or in an erasure that
// died half-way.
var ErrCleared = errors.New("session: cleared meanwhile")

// Exclusive queues the exclusive lock of a session on batch, a single statement. The caller queues
// the lock first and sends batch as a transaction. The transaction waits for all other transactions
// of the session with either lock, and later transactions wait for the commit. Only the context of
// the batch bounds the wait; at the end of the context, the batch fails and the transaction is
// rolled back. The lock ends with the transaction, so a connection pooler may be in between.
// Rarely, two sessions share a lock by their 64-bit hash. Exclusive sends nothing and cannot fail.
func Exclusive(batch *pgx.Batch, sessionID string) {
	batch.Queue(`SELECT pg_advisory_xact_lock(hashtextextended($1, 0))`, sessionID)
}

// Shared queues the shared lock of a session on batch, a single statement. The caller queues the
// lock first and sends batch as a transaction. The transaction runs in parallel with other shared
// transactions and waits for an exclusive transaction, also if the latter still waits. Only the
// context of the batch bounds the wait; at the end of the context, the batch fails and the
// transaction is rolled back. Shared sends nothing and cannot fail.
func Shared(batch *pgx.Batch, sessionID string) {
	batch.Queue(`SELECT pg_advisory_xact_lock_shared(hashtextextended($1, 0))`, sessionID)
}
