// Package erasure owns the erasure of a session that its guest cleared. Begin records the end of
// the session in Postgres, in a transaction; Finish then deletes the session from every store. A
// request that finds a cleared session finishes the erasure. The package never decides to clear a
// session.
package erasure

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/redis/go-redis/v9"

	"melmastoon.ghasi.io/bff-consumer/shared/event"
	"melmastoon.ghasi.io/bff-consumer/shared/idempotency"
	"melmastoon.ghasi.io/bff-consumer/shared/outbox"
	"melmastoon.ghasi.io/bff-consumer/shared/session"
	"melmastoon.ghasi.io/bff-consumer/shared/session/lock"
	"melmastoon.ghasi.io/bff-consumer/shared/wishlist"
)

// Eraser erases sessions. Safe for concurrent use.
type Eraser struct {
	rdb         redis.UniversalClient
	db          *pgxpool.Pool
	sessions    *session.Store
	idempotency *idempotency.Store
	outbox      *outbox.Recorder
}

// New returns an eraser over these stores. New dials nothing and never fails.
func New(
	rdb redis.UniversalClient, db *pgxpool.Pool, sessions *session.Store, idempotency *idempotency.Store, outbox *outbox.Recorder,
) *Eraser {
	return &Eraser{rdb, db, sessions, idempotency, outbox}
}

const (
	stepTimeout     = 1500 * time.Millisecond // for Begin, and again for Finish
	responseReserve = 100 * time.Millisecond  // of the request's time, for the response
)

// stepContext returns a context of 1.5 s, or of the request's remaining time less responseReserve
// if that is shorter.
func stepContext(ctx context.Context) (context.Context, context.CancelFunc) {
	within := stepTimeout
	if deadline, ok := ctx.Deadline(); ok {
		within = min(within, time.Until(deadline)-responseReserve)
	}
	return context.WithTimeout(context.WithoutCancel(ctx), within)
}

// Begin records the end of a session in a transaction, in a single round trip to Postgres of at
// most 1.5 s, and at least 100 ms before the request's deadline; with less time left, Begin fails
// at once. The transaction deletes the session's wishlist and its unsent events, writes events
// (optional: session.ended; not for a guest who opted out), and marks the session as cleared. After
// the commit, no event, wishlist item or idempotent answer is written for the session, and its id
// is not used again. The rest is for Finish. Two kinds of rows stay for audit, each for its own
// retention: handoffs, whose tokens must not work twice, and bot verdicts.
//
// The order of statements counts. Unsent events are deleted before session.ended is written, and
// session.ended is written before the session is marked, because the outbox takes no event of a
// marked session. The exclusive lock waits, within the 1.5 s, for other mutations of the session
// and makes a second Begin wait for the first; the second finds the session marked, so
// session.ended is written once.
//
// Begin needs no Redis. A disconnect of the client does not cancel it. It returns an error for an
// event without a JSON form, before any I/O, or the error of Postgres: the transaction may be
// committed then, and the caller may repeat Begin.
func (e *Eraser) Begin(ctx context.Context, s *session.Session, events ...event.Event) error {
	ctx, cancel := stepContext(ctx)
	defer cancel()
	var batch pgx.Batch
	lock.Exclusive(&batch, s.ID)
	outbox.DeleteUnsent(&batch, s.ID)
	wishlist.QueueDelete(&batch, s.ID)
	if err := outbox.Queue(&batch, events...); err != nil {
		return err
	}
	e.sessions.RecordCleared(&batch, s)
	if err := e.db.SendBatch(ctx, &batch).Close(); err != nil {
		return fmt.Errorf("erasure: begin: %w", err)
	}
	return nil
}

// Finish deletes a session marked by Begin from every store, within 1.5 s, and at least 100 ms
// before the request's deadline; with less time left it fails at once. It takes two round trips to
// Postgres and about six to Redis, plus one for every further 1,000 rows of the outbox's buffer. A
// disconnect of the client does not cancel it. Concurrent calls are harmless; Finish takes no lock
// and does not check the mark.
//
// Finish returns the first error of a store, Redis or Postgres, and skips the later steps. The
// caller may repeat Finish, and must after a failure; each step deletes the references to other
// data last, so a repeated Finish finds the rest.
func (e *Eraser) Finish(ctx context.Context, sessionID string) error {
	ctx, cancel := stepContext(ctx)
	defer cancel()
	if err := e.idempotency.DeleteCopies(ctx, sessionID); err != nil {
		return fmt.Errorf("erasure: finish: %w", err)
	}
	if err := e.sessions.Purge(ctx, e.rdb, sessionID); err != nil {
		return fmt.Errorf("erasure: finish: %w", err)
	}
	if err := e.outbox.DeleteBuffered(ctx, sessionID); err != nil {
		return fmt.Errorf("erasure: finish: %w", err)
	}
	var batch pgx.Batch
	idempotency.QueueDelete(&batch, sessionID)
	// Again, because a statement from before the commit of Begin saw no mark, and Begin did not see
	// its rows.
	outbox.DeleteUnsent(&batch, sessionID)
	if err := e.db.SendBatch(ctx, &batch).Close(); err != nil {
		return fmt.Errorf("erasure: finish: %w", err)
	}
	return nil
}
