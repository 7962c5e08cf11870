package wishlist

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/redis/go-redis/v9"

	"melmastoon.ghasi.io/bff-consumer/shared/redisclient"
	"melmastoon.ghasi.io/bff-consumer/shared/session"
)

// Store reads and writes wishlists. Safe for concurrent use.
type Store struct {
	rdb  redis.UniversalClient
	db   BatchSender
	keys redisclient.Keys
	now  func() time.Time
}

// BatchSender is a Postgres pool.
type BatchSender interface {
	SendBatch(ctx context.Context, batch *pgx.Batch) pgx.BatchResults
}

// New returns a store. now is the clock of mutations. New dials nothing and never fails.
func New(rdb redis.UniversalClient, db BatchSender, keys redisclient.Keys, now func() time.Time) *Store {
	return &Store{rdb, db, keys, now}
}

// Timeouts of reads from Postgres.
const (
	readTimeout         = 300 * time.Millisecond // of a list with a copy, to show the copy instead
	uncopiedReadTimeout = time.Second            // of a list without a copy
)

// Get reads the record, removed items included, in a single round trip to Postgres of at most 300
// ms; a disconnect of the client and an earlier deadline of ctx cancel the read. It returns an
// empty list for a session without a wishlist. It returns session.ErrCleared for a cleared session,
// or the error of Postgres: show the copy then, see session.Lists.Wishlist. Get does not use Redis
// and takes no lock of the session.
func (s *Store) Get(ctx context.Context, sessionID string) (List, error) {
	return s.read(ctx, sessionID, readTimeout)
}

// GetWithoutCopy is Get with a timeout of one second, for a list without a copy, with the same
// results and errors.
func (s *Store) GetWithoutCopy(ctx context.Context, sessionID string) (List, error) {
	return s.read(ctx, sessionID, uncopiedReadTimeout)
}

// read reads the record and the guest's consent in a single round trip.
func (s *Store) read(ctx context.Context, sessionID string, within time.Duration) (list List, err error) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	var batch pgx.Batch
	var choice *session.ConsentRecord
	session.QueueReadConsent(&batch, sessionID, &choice)
	QueueRead(&batch, sessionID, &list)
	if err := s.db.SendBatch(ctx, &batch).Close(); err != nil {
		return List{}, fmt.Errorf("wishlist: get: %w", err)
	}
	if choice != nil && choice.Cleared {
		return List{}, session.ErrCleared
	}
	return list, nil
}
