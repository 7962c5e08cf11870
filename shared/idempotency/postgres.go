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

const postgresTimeout = time.Second // for one step in Postgres

// postgresContext is the context of one step: a client that hangs up does not stop it half-way, the request's own deadline
// does.
func postgresContext(ctx context.Context) (context.Context, context.CancelFunc) {
	within := postgresTimeout
	if deadline, ok := ctx.Deadline(); ok {
		within = min(within, time.Until(deadline))
	}
	return context.WithTimeout(context.WithoutCancel(ctx), within)
}

// commit sends the work's statements and the record of its answer as one transaction: everything between two Syncs of
// the protocol is one.
func (r *Store) commit(ctx context.Context, q Request, composite string, o *record, work *pgx.Batch) error {
	ctx, cancel := postgresContext(ctx)
	defer cancel()
	b := &pgx.Batch{}
	lock.Shared(b, q.SessionID) // a clear waits for this to be over, or this sees what the clear has recorded
	// First, so that whoever is not the first fails before anything else is tried. A session that was cleared has no id
	// here: the row breaks NOT NULL and takes the whole transaction with it, so asking costs no round trip. The body is
	// kept as a JSON string in jsonb, which would reorder the members of an object.
	b.Queue(`
		INSERT INTO bff_consumer.idempotency_keys
		       (composite_key, guest_session_id, route, request_digest, response_status, response_body, created_at, expires_at)
		VALUES ($1,
		        (SELECT $2::text
		         WHERE NOT EXISTS (SELECT
		                           FROM bff_consumer.session_choice
		                           WHERE guest_session_id = $2::text AND cleared_at IS NOT NULL)),
		        $3, $4, $5, to_jsonb($6::text), $7, $8)`,
		composite, q.SessionID, q.Route, q.Digest[:], o.Status, string(o.Body), r.now(), o.expiresAt)
	b.QueuedQueries = append(b.QueuedQueries, work.QueuedQueries...)
	err := r.db.SendBatch(ctx, b).Close()
	switch {
	case isCleared(err):
		return fmt.Errorf("idempotency: commit: %w", lock.ErrCleared)
	case err != nil:
		return fmt.Errorf("idempotency: commit: %w", err)
	}
	return nil
}

// isCleared says whether a commit failed because the session was cleared.
func isCleared(err error) bool {
	const notNull = "23502"
	answer, ok := errors.AsType[*pgconn.PgError](err)
	return ok && answer.Code == notNull && answer.TableName == "idempotency_keys" && answer.ColumnName == "guest_session_id"
}

// isDuplicateKey says whether a commit failed because the key is on record.
func isDuplicateKey(err error) bool {
	const unique = "23505"
	answer, ok := errors.AsType[*pgconn.PgError](err)
	return ok && answer.Code == unique && answer.ConstraintName == "idempotency_keys_pkey"
}

// loadRecord reads the record of a key; nil when there is none. One whose time is over is removed: it must not keep the key.
func (r *Store) loadRecord(ctx context.Context, composite string) (*record, error) {
	ctx, cancel := postgresContext(ctx)
	defer cancel()
	var (
		b      pgx.Batch
		found  *record
		digest []byte
	)
	b.Queue(`
		DELETE FROM bff_consumer.idempotency_keys
		WHERE composite_key = $1 AND expires_at <= $2`, composite, r.now())
	b.Queue(`
		SELECT request_digest, response_status, response_body #>> '{}', expires_at
		FROM bff_consumer.idempotency_keys
		WHERE composite_key = $1`, composite).QueryRow(func(row pgx.Row) error {
		o := record{Response: Response{Replayed: true}}
		err := row.Scan(&digest, &o.Status, &o.Body, &o.expiresAt)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		copy(o.digest[:], digest)
		found = &o
		return err
	})
	if err := r.db.SendBatch(ctx, &b).Close(); err != nil {
		return nil, fmt.Errorf("idempotency: load: %w", err)
	}
	return found, nil
}
