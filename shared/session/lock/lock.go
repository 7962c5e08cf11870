// Package turn puts the transactions of one session in order: those that must be alone, and those that may run beside
// each other. It is apart from package session, because who has to wait for a session need not know what one is.
package lock

import (
	"errors"

	"github.com/jackc/pgx/v5"
)

// ErrCleared says that the session was cleared: while a request for it ran, or by a clear that died half-way.
var ErrCleared = errors.New("session: cleared meanwhile")

// Exclusive begins a batch that must not run beside another of the same session: the second waits for the first to commit.
// It belongs to the transaction, so that a pooler may stand between.
func Exclusive(batch *pgx.Batch, sessionID string) {
	batch.Queue(`SELECT pg_advisory_xact_lock(hashtextextended($1, 0))`, sessionID)
}

// Shared begins a batch that may run beside others that Share began, but not beside one that Lock did.
func Shared(batch *pgx.Batch, sessionID string) {
	batch.Queue(`SELECT pg_advisory_xact_lock_shared(hashtextextended($1, 0))`, sessionID)
}
