package session

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"melmastoon.ghasi.io/bff-consumer/shared/session/lock"
)

// Querier is a Postgres pool.
type Querier interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// ConsentRecord is the guest's consent in Postgres. The record outlives the session in Redis.
type ConsentRecord struct {
	Telemetry bool
	Marketing bool
	DecidedAt time.Time
	Cleared   bool // the guest cleared the session; its id is never used again
}

const (
	consentTimeout       = 150 * time.Millisecond
	consentRetryInterval = time.Second // without queries after a failed query
	unknownConsent       = "?"         // consent in the hash while Postgres did not answer
)

const selectConsent = `
	SELECT telemetry, marketing, decided_at, cleared_at IS NOT NULL
	FROM bff_consumer.session_choice
	WHERE guest_session_id = $1`

// scanConsent returns nil if the guest never decided.
func scanConsent(row pgx.Row) (*ConsentRecord, error) {
	var c ConsentRecord
	err := row.Scan(&c.Telemetry, &c.Marketing, &c.DecidedAt, &c.Cleared)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return nil, nil
	case err != nil:
		return nil, err
	}
	return &c, nil
}

// RestoreConsent completes a session whose consent Redis does not have, because Redis lost the
// session or Postgres did not answer an earlier request, and returns s. The consent comes from
// Postgres, or from the browser's headers if the guest never decided; a session cleared by its
// guest is replaced with a new session. For any other session, also a new or degraded one,
// RestoreConsent returns s at no cost.
//
// The query takes up to 150 ms, whatever the cancellation and the deadline of ctx. RestoreConsent
// never fails: after any error of Postgres, ConsentKnown of the session is false, and the whole
// instance sends no such query for the next second; sessions of that second have an unknown consent
// too. Concurrent requests each send a query; there is no lock.
func (st *Store) RestoreConsent(ctx context.Context, request *Request, s *Session) *Session {
	if !s.needsConsent {
		return s
	}
	now := time.Now() // not st.now: the pause is about Postgres, not about the guest
	if now.UnixNano() < st.consentRetryAt.Load() {
		s.consentUnavailable = true
		return s
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), consentTimeout)
	defer cancel()
	c, err := scanConsent(st.db.QueryRow(ctx, selectConsent, s.ID))
	switch {
	case err != nil:
		st.consentRetryAt.Store(now.Add(consentRetryInterval).UnixNano())
		s.consentUnavailable = true
	case c != nil && c.Cleared:
		return st.newSession(request, mintID(st.ring, st.now()), true)
	default:
		s.needsConsent, s.consentRestored = false, true
		if c != nil {
			s.Consent = Consent{c.Telemetry, c.Marketing}
		}
	}
	return s
}

// applyConsent sets the guest's consent, whatever Redis has.
func (s *Session) applyConsent(c Consent) {
	s.Consent, s.needsConsent, s.consentUnavailable = c, false, false
	s.setField("consentTelemetry", formatBool(c.Telemetry))
	s.setField("consentMarketing", formatBool(c.Marketing))
}

// QueueReadConsent queues the read of a guest's consent on a batch, one statement, and sends
// nothing. When the batch runs, *into becomes the record, or nil if the guest never decided or the
// query failed. An error of Postgres is an error of the batch.
func QueueReadConsent(batch *pgx.Batch, sessionID string, into **ConsentRecord) {
	batch.Queue(selectConsent, sessionID).QueryRow(func(row pgx.Row) (err error) {
		*into, err = scanConsent(row)
		return err
	})
}

// ReconcileConsent makes the session agree with the record in Postgres, in case Redis missed a
// decision. If c is nil or agrees, s stays unchanged; c.Cleared is ignored. Memory only; the caller
// saves the session.
func (s *Session) ReconcileConsent(c *ConsentRecord) {
	if c != nil && s.Consent != (Consent{c.Telemetry, c.Marketing}) {
		s.applyConsent(Consent{c.Telemetry, c.Marketing})
	}
}

// RecordOptOut queues a statement to record the browser's refusal of telemetry, unless the guest
// already decided. Send the statement with the first rows of a session that opted out: jobs that
// report on those rows later see the record alone, not the browser's headers. RecordOptOut sends
// nothing and cannot fail; the statement may run twice.
func RecordOptOut(batch *pgx.Batch, sessionID string, at time.Time) {
	batch.Queue(`
		INSERT INTO bff_consumer.session_choice (guest_session_id, telemetry, marketing, decided_at)
		VALUES ($1, false, false, $2)
		ON CONFLICT (guest_session_id) DO NOTHING`, sessionID, at)
}

// ErrCleared is lock.ErrCleared.
var ErrCleared = lock.ErrCleared

// IsCleared asks Postgres whether the guest cleared the session. The query takes up to 150 ms,
// whatever the cancellation and the deadline of ctx. IsCleared returns false and the error of
// Postgres if the query fails, and false for an unknown id.
func (st *Store) IsCleared(ctx context.Context, id string) (bool, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), consentTimeout)
	defer cancel()
	c, err := scanConsent(st.db.QueryRow(ctx, selectConsent, id))
	return c != nil && c.Cleared, err
}

// SetConsent records the guest's decision in Postgres, in a single round trip bounded by ctx alone.
// A nil argument leaves that part unchanged. After the commit, no event of a session that opted out
// is written. SetConsent updates s; the caller saves s to Redis, and Redis is not needed here.
//
// It returns ErrCleared if the guest cleared the session, or the error of Postgres, also after the
// end of ctx, and leaves s unchanged then. After an error other than ErrCleared, Postgres may have
// recorded the decision; the call may be repeated. Of two concurrent calls the later wins, after
// waiting for the row of the first.
func (st *Store) SetConsent(ctx context.Context, s *Session, telemetry, marketing *bool) error {
	var c Consent
	err := st.db.QueryRow(ctx, `
		INSERT INTO bff_consumer.session_choice AS c (guest_session_id, telemetry, marketing, decided_at)
		VALUES ($1, coalesce($2::boolean, $4), coalesce($3::boolean, $5), $6)
		ON CONFLICT (guest_session_id) DO UPDATE
		SET telemetry = coalesce($2, c.telemetry),
		    marketing = coalesce($3, c.marketing),
		    decided_at = excluded.decided_at
		WHERE c.cleared_at IS NULL
		RETURNING telemetry, marketing`,
		s.ID, telemetry, marketing, s.Consent.Telemetry, s.Consent.Marketing, st.now()).Scan(&c.Telemetry, &c.Marketing)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return ErrCleared
	case err != nil:
		return fmt.Errorf("session: set consent: %w", err)
	}
	s.applyConsent(c)
	return nil
}

// RecordCleared queues a statement to record that the guest cleared the session. After the commit,
// no event, no wishlist item and no idempotent answer of the session is written, and no request
// reuses the id. The statement deletes nothing. It may run twice; the first time stays.
// RecordCleared sends nothing and cannot fail.
func (st *Store) RecordCleared(batch *pgx.Batch, s *Session) {
	batch.Queue(`
		INSERT INTO bff_consumer.session_choice AS c (guest_session_id, telemetry, marketing, decided_at, cleared_at)
		VALUES ($1, $2, $3, $4, $4)
		ON CONFLICT (guest_session_id) DO UPDATE
		SET cleared_at = coalesce(c.cleared_at, excluded.cleared_at)`,
		s.ID, s.Consent.Telemetry, s.Consent.Marketing, st.now())
}
