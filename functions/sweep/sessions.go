package sweep

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/redis/go-redis/v9"

	"melmastoon.ghasi.io/bff-consumer/shared/event"
	"melmastoon.ghasi.io/bff-consumer/shared/id"
	"melmastoon.ghasi.io/bff-consumer/shared/outbox"
	"melmastoon.ghasi.io/bff-consumer/shared/redisclient"
	"melmastoon.ghasi.io/bff-consumer/shared/session"
	"melmastoon.ghasi.io/bff-consumer/shared/wishlist"
)

// sessionSweeper ends idle sessions. The cookies and Redis hashes of such sessions have expired.
type sessionSweeper struct {
	rdb      redis.UniversalClient
	db       database
	keys     redisclient.Keys
	instance string
}

const (
	// clockSlack is added to session.TTL: a visit is recorded within a minute, by another machine's
	// clock.
	clockSlack       = time.Hour
	sessionBatchSize = 500
)

// sweep ends up to 500 sessions of a shard in each batch: three round trips to Redis and three to
// Postgres. After a failure of Redis or Postgres the next sweep repeats the batch with the same
// event ids.
func (s *sessionSweeper) sweep(ctx context.Context, now time.Time, timeUp func() bool) (ended int64, more bool, err error) {
	err = forEachShard(func(shard string, optedOut bool) error {
		for !more {
			idle, err := session.ReadIdle(ctx, s.rdb, s.keys, shard, optedOut, now.Add(-session.TTL-clockSlack), sessionBatchSize)
			if err != nil || len(idle) == 0 {
				return err
			}
			if idle, err = s.endIdle(ctx, shard, optedOut, idle); err != nil {
				return err
			}
			// After the commit: a crash in between repeats the batch, with the same events.
			if err := session.RemoveIdle(ctx, s.rdb, s.keys, shard, optedOut, idle); err != nil {
				return err
			}
			ended += int64(len(idle))
			more = timeUp()
		}
		return nil
	})
	return ended, more, err
}

// errSessionResumed rolls back a batch with a session whose guest returned.
var errSessionResumed = errors.New("a guest returned during the sweep")

// endIdle ends the sessions in a single transaction and returns the ended sessions. When guests
// returned meanwhile, endIdle rolls back and starts again without their sessions.
func (s *sessionSweeper) endIdle(ctx context.Context, shard string, optedOut bool, idle []session.Idle) ([]session.Idle, error) {
	for {
		still := idle
		err := pgx.BeginFunc(ctx, s.db, func(tx pgx.Tx) error {
			if err := s.recordEnded(ctx, tx, optedOut, idle); err != nil {
				return err
			}
			// The check comes after the writes, so that a guest can return unnoticed only during
			// the commit.
			var err error
			if still, err = session.StillIdle(ctx, s.rdb, s.keys, shard, optedOut, idle); err == nil && len(still) < len(idle) {
				err = errSessionResumed
			}
			return err
		})
		if errors.Is(err, errSessionResumed) {
			idle = still
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("sweep: end %d sessions: %w", len(idle), err)
		}
		return idle, nil
	}
}

// recordEnded writes session.ended.v1 of each session, unless the guest opted out, and removes the
// wishlists, unreachable from now on: a single round trip. Invalid session ids are skipped, and so
// leave Redis without an event: an invalid id would fail the insert of the whole batch.
func (s *sessionSweeper) recordEnded(ctx context.Context, tx pgx.Tx, optedOut bool, idle []session.Idle) error {
	var events []event.Event
	ids := make([]string, 0, len(idle))
	for _, i := range idle {
		if _, err := id.Parse(id.Session, i.ID); err != nil {
			continue
		}
		if ids = append(ids, i.ID); !optedOut {
			events = append(events, s.endedEvent(i))
		}
	}
	var batch pgx.Batch
	if err := outbox.Queue(&batch, events...); err != nil {
		return err
	}
	wishlist.QueueRemoveAll(&batch, ids)
	return tx.SendBatch(ctx, &batch).Close()
}

// endedEvent returns session.ended.v1. The event id is derived from session and last visit, so a
// repeated sweep writes the same event.
func (s *sessionSweeper) endedEvent(i session.Idle) event.Event {
	at := i.LastSeen.Add(session.TTL)
	return event.New(event.Meta{
		SessionID: i.ID, Instance: s.instance, Now: at, ID: id.Derive(id.Event, at, "session.ended", i.ID),
	}, event.SessionEnded{
		GuestSessionID: i.ID, EndedAt: at, Reason: event.TTLExpired, LastSeenAt: i.LastSeen,
		LifetimeSeconds: max(0, int64(i.LastSeen.Sub(id.Time(i.ID)).Seconds())),
	})
}

// count counts the idle sessions in 64 round trips to Redis. It fails without Redis.
func (s *sessionSweeper) count(ctx context.Context, now time.Time) (n int64, more bool, err error) {
	err = forEachShard(func(shard string, optedOut bool) error {
		idle, err := session.CountIdle(ctx, s.rdb, s.keys, shard, optedOut, now.Add(-session.TTL-clockSlack))
		n += idle
		return err
	})
	return n, false, err
}

// forEachShard calls do for each of the 64 sets of last visits: 32 shards, each with a set for
// sessions with consent and a set for sessions without. It stops at the first error.
func forEachShard(do func(shard string, optedOut bool) error) error {
	for _, shard := range session.Shards {
		for _, optedOut := range []bool{false, true} {
			if err := do(string(shard), optedOut); err != nil {
				return err
			}
		}
	}
	return nil
}
