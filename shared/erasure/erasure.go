// Package burial owns the end of a session that its guest cleared. Postgres records that it is over, in one
// transaction; then every store forgets it, and whoever meets such a session that is not forgotten yet finishes that.
// It never decides that a session is to be cleared.
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

// Eraser buries sessions. Safe for concurrent use.
type Eraser struct {
	rdb         redis.UniversalClient
	db          *pgxpool.Pool
	sessions    *session.Store
	idempotency *idempotency.Store
	outbox      *outbox.Recorder
}

// New makes a Room.
func New(rdb redis.UniversalClient, db *pgxpool.Pool, sessions *session.Store, once *idempotency.Store, outbox *outbox.Recorder) *Eraser {
	return &Eraser{rdb, db, sessions, once, outbox}
}

const (
	stepTimeout     = 1500 * time.Millisecond // for either step; the guest hanging up does not end it
	responseReserve = 100 * time.Millisecond  // of the request's time, left for its answer
)

func stepContext(ctx context.Context) (context.Context, context.CancelFunc) {
	within := stepTimeout
	if deadline, ok := ctx.Deadline(); ok {
		within = min(within, time.Until(deadline)-responseReserve)
	}
	return context.WithTimeout(context.WithoutCancel(ctx), within)
}

// Begin records that a session is over, in one transaction, and takes 1.5 s at most. From its commit on nothing is
// written for it and its id is not used again. told is the event of it, or none. What is left is for Finish, but for
// the ledger of handoffs, whose tokens must not work twice, and verdicts of the bot detector: both for audit, both for
// their own short time.
//
// The order counts: unsent events go before the last one is written, and that before the id is buried, after which no
// event of it can be. A second burial waits for the first and finds it done: one end is told.
func (r *Eraser) Begin(ctx context.Context, s *session.Session, told ...event.Event) error {
	ctx, cancel := stepContext(ctx)
	defer cancel()
	var batch pgx.Batch
	lock.Exclusive(&batch, s.ID)
	outbox.DeleteUnsent(&batch, s.ID)
	wishlist.QueueDelete(&batch, s.ID)
	if err := outbox.Queue(&batch, told...); err != nil {
		return err
	}
	r.sessions.RecordCleared(&batch, s)
	if err := r.db.SendBatch(ctx, &batch).Close(); err != nil {
		return fmt.Errorf("burial: bury: %w", err)
	}
	return nil
}

// Finish makes every store forget a session that was buried, and takes 1.5 s at most. It may be repeated, and must be
// after it failed: nothing that leads to something else is deleted before it.
func (r *Eraser) Finish(ctx context.Context, sessionID string) error {
	ctx, cancel := stepContext(ctx)
	defer cancel()
	if err := r.idempotency.DeleteCopies(ctx, sessionID); err != nil {
		return fmt.Errorf("burial: finish: %w", err)
	}
	if err := r.sessions.Purge(ctx, r.rdb, sessionID); err != nil {
		return fmt.Errorf("burial: finish: %w", err)
	}
	if err := r.outbox.DeleteBuffered(ctx, sessionID); err != nil {
		return fmt.Errorf("burial: finish: %w", err)
	}
	var batch pgx.Batch
	idempotency.QueueDelete(&batch, sessionID)
	outbox.DeleteUnsent(&batch, sessionID) // once more: a statement that began before the burial did not see it, and was not seen
	if err := r.db.SendBatch(ctx, &batch).Close(); err != nil {
		return fmt.Errorf("burial: finish: %w", err)
	}
	return nil
}
