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

// sessionSweeper ends the sessions nobody came back to: their cookie and their hash in Redis are gone by then.
type sessionSweeper struct {
	rdb      redis.UniversalClient
	db       database
	keys     redisclient.Keys
	instance string
}

const (
	// A session is renewed within a minute of its last visit, and the visit's clock is not this one's.
	clockSlack       = time.Hour
	sessionBatchSize = 500
)

func (s *sessionSweeper) sweep(ctx context.Context, now time.Time, enough func() bool) (ended int64, more bool, err error) {
	err = forEachShard(func(lane string, silent bool) error {
		for !more {
			quiet, err := session.ReadIdle(ctx, s.rdb, s.keys, lane, silent, now.Add(-session.TTL-clockSlack), sessionBatchSize)
			if err != nil || len(quiet) == 0 {
				return err
			}
			if quiet, err = s.endIdle(ctx, lane, silent, quiet); err != nil {
				return err
			}
			// Last, because what is lost between the two is told again, as the same event.
			if err := session.RemoveIdle(ctx, s.rdb, s.keys, lane, silent, quiet); err != nil {
				return err
			}
			ended += int64(len(quiet))
			more = enough()
		}
		return nil
	})
	return ended, more, err
}

// endIdle ends those of the sessions to which nobody has come back, and returns them.
func (s *sessionSweeper) endIdle(ctx context.Context, lane string, silent bool, quiet []session.Idle) ([]session.Idle, error) {
	for {
		still := quiet
		err := pgx.BeginFunc(ctx, s.db, func(tx pgx.Tx) error {
			if err := s.recordEnded(ctx, tx, silent, quiet); err != nil {
				return err
			}
			// With all written, so that what is left to those who come back now and are not seen is the commit.
			var err error
			if still, err = session.StillIdle(ctx, s.rdb, s.keys, lane, silent, quiet); err == nil && len(still) < len(quiet) {
				err = errSessionResumed
			}
			return err
		})
		if errors.Is(err, errSessionResumed) {
			quiet = still // without them, from the beginning
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("sweep: end %d sessions: %w", len(quiet), err)
		}
		return quiet, nil
	}
}

var errSessionResumed = errors.New("somebody came back meanwhile")

// recordEnded tells that sessions are over, and removes what is left of their wishlists, which nobody can reach any more. What is no
// id of a session is left out, and so taken off the list: it would be told as one, or keep Postgres from taking the others.
func (s *sessionSweeper) recordEnded(ctx context.Context, tx pgx.Tx, silent bool, quiet []session.Idle) error {
	var events []event.Event
	ids := make([]string, 0, len(quiet))
	for _, q := range quiet {
		if _, err := id.Parse(id.Session, q.ID); err != nil {
			continue
		}
		if ids = append(ids, q.ID); !silent {
			events = append(events, s.endedEvent(q))
		}
	}
	var batch pgx.Batch
	if err := outbox.Queue(&batch, events...); err != nil {
		return err
	}
	wishlist.QueueRemoveAll(&batch, ids)
	return tx.SendBatch(ctx, &batch).Close()
}

// endedEvent is the same event however often it is made.
func (s *sessionSweeper) endedEvent(q session.Idle) event.Event {
	at := q.LastSeen.Add(session.TTL)
	return event.New(event.Meta{
		SessionID: q.ID, Instance: s.instance, Now: at, ID: id.Derive(id.Event, at, "session.ended", q.ID),
	}, event.SessionEnded{
		GuestSessionID: q.ID, EndedAt: at, Reason: event.TTLExpired, LastSeenAt: q.LastSeen,
		LifetimeSeconds: max(0, int64(q.LastSeen.Sub(id.Time(q.ID)).Seconds())),
	})
}

func (s *sessionSweeper) count(ctx context.Context, now time.Time) (n int64, more bool, err error) {
	err = forEachShard(func(lane string, silent bool) error {
		quiet, err := session.CountIdle(ctx, s.rdb, s.keys, lane, silent, now.Add(-session.TTL-clockSlack))
		n += quiet
		return err
	})
	return n, false, err
}

// forEachShard goes through all lists of when sessions were last seen.
func forEachShard(do func(lane string, silent bool) error) error {
	for _, lane := range session.Shards {
		for _, silent := range []bool{false, true} {
			if err := do(string(lane), silent); err != nil {
				return err
			}
		}
	}
	return nil
}
