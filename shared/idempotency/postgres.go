package idempotency

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"melmastoon.ghasi.io/bff-consumer/shared/session/lock"
)

const postgresTimeout = time.Second // of one round trip to Postgres

// postgresContext returns the context of one round trip: it ends after postgresTimeout or at the
// request's deadline, but not when the client disconnects.
func postgresContext(ctx context.Context) (context.Context, context.CancelFunc) {
	timeout := postgresTimeout
	if deadline, ok := ctx.Deadline(); ok {
		timeout = min(timeout, time.Until(deadline))
	}
	return context.WithTimeout(context.WithoutCancel(ctx), timeout)
}

// commit runs the statements of a mutation and inserts the record of its response, in one
// transaction and one round trip: a batch between two Sync messages of the protocol is a
// transaction. commit returns lock.ErrCleared if the session was cleared.
func (s *Store) commit(ctx context.Context, q Request, compositeKey string, o *record, statements *pgx.Batch) error {
	ctx, cancel := postgresContext(ctx)
	defer cancel()
	b := &pgx.Batch{}
	// a clear waits for this transaction, or this transaction sees the recorded clear
	lock.Shared(b, q.SessionID)
	// The record is inserted first: a duplicate request fails before the statements of the mutation
	// run. For a cleared session the subquery yields NULL, the row violates NOT NULL, and the
	// transaction fails, so the check costs no round trip. The body is a JSON string, because jsonb
	// reorders the members of an object.
	b.Queue(`
		INSERT INTO bff_consumer.idempotency_keys
		       (composite_key, guest_session_id, route, request_digest, response_status, response_body, created_at, expires_at)
		VALUES ($1,
		        (SELECT $2::text
		         WHERE NOT EXISTS (SELECT
		                           FROM bff_consumer.session_choice
		                           WHERE guest_session_id = $2::text AND cleared_at IS NOT NULL)),
		        $3, $4, $5, to_jsonb($6::text), $7, $8)`,
		compositeKey, q.SessionID, q.Route, q.Digest[:], o.Status, string(o.Body), s.now(), o.expiresAt)
	b.QueuedQueries = append(b.QueuedQueries, statements.QueuedQueries...)
	err := s.db.SendBatch(ctx, b).Close()
	switch {
	case isCleared(err):
		return fmt.Errorf("idempotency: commit: %w", lock.ErrCleared)
	case err != nil:
		return fmt.Errorf("idempotency: commit: %w", err)
	}
	return nil
}

// isCleared reports whether a commit failed because the session was cleared.
func isCleared(err error) bool {
	const notNull = "23502"
	pgErr, ok := errors.AsType[*pgconn.PgError](err)
	return ok && pgErr.Code == notNull && pgErr.TableName == "idempotency_keys" && pgErr.ColumnName == "guest_session_id"
}

// isDuplicateKey reports whether a commit failed because a record of the key exists.
func isDuplicateKey(err error) bool {
	const unique = "23505"
	pgErr, ok := errors.AsType[*pgconn.PgError](err)
	return ok && pgErr.Code == unique && pgErr.ConstraintName == "idempotency_keys_pkey"
}

// loadRecord returns the record of a key, or nil without a record, in one round trip. It deletes an
// expired record, which would block the key.
func (s *Store) loadRecord(ctx context.Context, compositeKey string) (*record, error) {
	ctx, cancel := postgresContext(ctx)
	defer cancel()
	var (
		b      pgx.Batch
		found  *record
		digest []byte
	)
	b.Queue(`
		DELETE FROM bff_consumer.idempotency_keys
		WHERE composite_key = $1 AND expires_at <= $2`, compositeKey, s.now())
	b.Queue(`
		SELECT request_digest, response_status, response_body #>> '{}', expires_at
		FROM bff_consumer.idempotency_keys
		WHERE composite_key = $1`, compositeKey).QueryRow(func(row pgx.Row) error {
		o := record{Response: Response{Replayed: true}}
		err := row.Scan(&digest, &o.Status, &o.Body, &o.expiresAt)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		copy(o.digest[:], digest)
		found = &o
		return err
	})
	if err := s.db.SendBatch(ctx, &b).Close(); err != nil {
		return nil, fmt.Errorf("idempotency: load: %w", err)
	}
	return found, nil
}
