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
	"melmastoon.ghasi.io/bff-consumer/shared/keyspace"
	"melmastoon.ghasi.io/bff-consumer/shared/outbox"
	"melmastoon.ghasi.io/bff-consumer/shared/session"
	"melmastoon.ghasi.io/bff-consumer/shared/wishlist"
)

// sessions ends the sessions nobody came back to: their cookie and their hash in Redis are gone by then.
type sessions struct {
	rdb      redis.UniversalClient
	db       database
	keys     keyspace.Keys
	instance string
}

const (
	// A session is renewed within a minute of its last visit, and the visit's clock is not this one's.
	slack         = time.Hour
	sessionsAStep = 500
)

func (s *sessions) sweep(ctx context.Context, now time.Time, enough func() bool) (ended int64, more bool, err error) {
	err = eachList(func(lane string, silent bool) error {
		for !more {
			quiet, err := session.ReadQuiet(ctx, s.rdb, s.keys, lane, silent, now.Add(-session.TTL-slack), sessionsAStep)
			if err != nil || len(quiet) == 0 {
				return err
			}
			if quiet, err = s.end(ctx, lane, silent, quiet); err != nil {
				return err
			}
			// Last, because what is lost between the two is told again, as the same event.
			if err := session.ForgetQuiet(ctx, s.rdb, s.keys, lane, silent, quiet); err != nil {
				return err
			}
			ended += int64(len(quiet))
			more = enough()
		}
		return nil
	})
	return ended, more, err
}

// end ends those of the sessions to which nobody has come back, and returns them.
func (s *sessions) end(ctx context.Context, lane string, silent bool, quiet []session.Quiet) ([]session.Quiet, error) {
	for {
		still := quiet
		err := pgx.BeginFunc(ctx, s.db, func(tx pgx.Tx) error {
			if err := s.write(ctx, tx, silent, quiet); err != nil {
				return err
			}
			// With all written, so that what is left to those who come back now and are not seen is the commit.
			var err error
			if still, err = session.StillQuiet(ctx, s.rdb, s.keys, lane, silent, quiet); err == nil && len(still) < len(quiet) {
				err = errCameBack
			}
			return err
		})
		if errors.Is(err, errCameBack) {
			quiet = still // without them, from the beginning
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("sweep: end %d sessions: %w", len(quiet), err)
		}
		return quiet, nil
	}
}

var errCameBack = errors.New("somebody came back meanwhile")

// write tells that sessions are over, and removes what is left of their wishlists, which nobody can reach any more. What is no
// id of a session is left out, and so taken off the list: it would be told as one, or keep Postgres from taking the others.
func (s *sessions) write(ctx context.Context, tx pgx.Tx, silent bool, quiet []session.Quiet) error {
	var events []event.Event
	ids := make([]string, 0, len(quiet))
	for _, q := range quiet {
		if _, err := id.Parse(id.Session, q.ID); err != nil {
			continue
		}
		if ids = append(ids, q.ID); !silent {
			events = append(events, s.ended(q))
		}
	}
	var batch pgx.Batch
	if err := outbox.Queue(&batch, events...); err != nil {
		return err
	}
	wishlist.Abandon(&batch, ids)
	return tx.SendBatch(ctx, &batch).Close()
}

// ended is the same event however often it is made.
func (s *sessions) ended(q session.Quiet) event.Event {
	at := q.LastSeen.Add(session.TTL)
	return event.New(event.Meta{
		SessionID: q.ID, Instance: s.instance, Now: at, ID: id.Derive(id.Event, at, "session.ended", q.ID),
	}, event.SessionEnded{
		GuestSessionID: q.ID, EndedAt: at, Reason: event.TTLExpired, LastSeenAt: q.LastSeen,
		LifetimeSeconds: max(0, int64(q.LastSeen.Sub(id.Time(q.ID)).Seconds())),
	})
}

func (s *sessions) count(ctx context.Context, now time.Time) (n int64, more bool, err error) {
	err = eachList(func(lane string, silent bool) error {
		quiet, err := session.CountQuiet(ctx, s.rdb, s.keys, lane, silent, now.Add(-session.TTL-slack))
		n += quiet
		return err
	})
	return n, false, err
}

// eachList goes through all lists of when sessions were last seen.
func eachList(do func(lane string, silent bool) error) error {
	for _, lane := range session.Lanes {
		for _, silent := range []bool{false, true} {
			if err := do(string(lane), silent); err != nil {
				return err
			}
		}
	}
	return nil
}
