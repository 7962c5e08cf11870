package session

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"melmastoon.ghasi.io/bff-consumer/shared/session/lock"
)

// Querier is what is needed of Postgres.
type Querier interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// ConsentRecord is what a guest decided about their data, as Postgres has it: the record that outlives Redis.
type ConsentRecord struct {
	Telemetry bool
	Marketing bool
	DecidedAt time.Time
	Cleared   bool // the session was cleared: its id is never used again
}

const (
	consentTimeout       = 150 * time.Millisecond
	consentRetryInterval = time.Second // between two questions to a Postgres that does not answer
	unknownConsent       = "?"         // consent in the hash while nobody could be asked
)

const selectConsent = `
	SELECT telemetry, marketing, decided_at, cleared_at IS NOT NULL
	FROM bff_consumer.session_choice
	WHERE guest_session_id = $1`

func scanConsent(row pgx.Row) (*ConsentRecord, error) {
	var c ConsentRecord
	err := row.Scan(&c.Telemetry, &c.Marketing, &c.DecidedAt, &c.Cleared)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return nil, nil
	case err != nil:
		return nil, err // and not a choice that nobody made
	}
	return &c, nil
}

// RestoreConsent completes a session that Redis lost: with what the guest decided, or, when it was cleared, with a new session
// instead. All others it returns as they are. It asks Postgres, within 150 ms; as long as that has no answer the
// session is not Known.
func (r *Store) RestoreConsent(ctx context.Context, v *Request, s *Session) *Session {
	if !s.needsConsent {
		return s
	}
	now := time.Now() // the pause is about the store, not about the guest
	if now.UnixNano() < r.consentRetryAt.Load() {
		s.consentUnavailable = true
		return s
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), consentTimeout)
	defer cancel()
	c, err := scanConsent(r.db.QueryRow(ctx, selectConsent, s.ID))
	switch {
	case err != nil:
		r.consentRetryAt.Store(now.Add(consentRetryInterval).UnixNano())
		s.consentUnavailable = true
	case c != nil && c.Cleared:
		return r.newSession(v, mintID(r.ring, r.now()), true)
	default:
		s.needsConsent, s.consentRestored = false, true
		if c != nil {
			s.Consent = Consent{c.Telemetry, c.Marketing}
		}
	}
	return s
}

// applyConsent takes over what is known to be the guest's decision, whatever Redis has.
func (s *Session) applyConsent(c Consent) {
	s.Consent, s.needsConsent, s.consentUnavailable = c, false, false
	s.setField("consentTelemetry", formatBool(c.Telemetry))
	s.setField("consentMarketing", formatBool(c.Marketing))
}

// QueueReadConsent puts the read of what a guest decided into a batch; nil when they never did.
func QueueReadConsent(batch *pgx.Batch, sessionID string, into **ConsentRecord) {
	batch.Queue(selectConsent, sessionID).QueryRow(func(row pgx.Row) (err error) {
		*into, err = scanConsent(row)
		return err
	})
}

// ReconcileConsent makes the session agree with the record, which counts when Redis missed a decision.
func (s *Session) ReconcileConsent(c *ConsentRecord) {
	if c != nil && s.Consent != (Consent{c.Telemetry, c.Marketing}) {
		s.applyConsent(Consent{c.Telemetry, c.Marketing})
	}
}

// RecordOptOut puts on record, with what else is in batch, that a guest's browser refuses telemetry; what the guest decided
// stands. It goes along with the first rows of such a session, because who tells of those rows later asks the record
// and not the browser.
func RecordOptOut(batch *pgx.Batch, sessionID string, at time.Time) {
	batch.Queue(`
		INSERT INTO bff_consumer.session_choice (guest_session_id, telemetry, marketing, decided_at)
		VALUES ($1, false, false, $2)
		ON CONFLICT (guest_session_id) DO NOTHING`, sessionID, at)
}

// ErrCleared is turn.ErrCleared.
var ErrCleared = lock.ErrCleared

// IsCleared asks Postgres, within 150 ms, whether a session was cleared.
func (r *Store) IsCleared(ctx context.Context, id string) (bool, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), consentTimeout)
	defer cancel()
	c, err := scanConsent(r.db.QueryRow(ctx, selectConsent, id))
	return c != nil && c.Cleared, err
}

// SetConsent records what the guest decides; nil leaves that part as it is. From its commit on no event of a session that
// refused is written. The session takes the decision over; its hash is the caller's to save. It fails with ErrCleared,
// or with what Postgres said.
func (r *Store) SetConsent(ctx context.Context, s *Session, telemetry, marketing *bool) error {
	var c Consent
	err := r.db.QueryRow(ctx, `
		INSERT INTO bff_consumer.session_choice AS c (guest_session_id, telemetry, marketing, decided_at)
		VALUES ($1, coalesce($2::boolean, $4), coalesce($3::boolean, $5), $6)
		ON CONFLICT (guest_session_id) DO UPDATE
		SET telemetry = coalesce($2, c.telemetry),
		    marketing = coalesce($3, c.marketing),
		    decided_at = excluded.decided_at
		WHERE c.cleared_at IS NULL
		RETURNING telemetry, marketing`,
		s.ID, telemetry, marketing, s.Consent.Telemetry, s.Consent.Marketing, r.now()).Scan(&c.Telemetry, &c.Marketing)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return ErrCleared
	case err != nil:
		return fmt.Errorf("session: decide: %w", err)
	}
	s.applyConsent(c)
	return nil
}

// RecordCleared records, with what else is in batch, that a session is over: from its commit on nothing is written for it, and
// its id is not used again. It may be said twice.
func (r *Store) RecordCleared(batch *pgx.Batch, s *Session) {
	batch.Queue(`
		INSERT INTO bff_consumer.session_choice AS c (guest_session_id, telemetry, marketing, decided_at, cleared_at)
		VALUES ($1, $2, $3, $4, $4)
		ON CONFLICT (guest_session_id) DO UPDATE
		SET cleared_at = coalesce(c.cleared_at, excluded.cleared_at)`,
		s.ID, s.Consent.Telemetry, s.Consent.Marketing, r.now())
}
