package session

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"melmastoon.ghasi.io/bff-consumer/shared/session/turn"
)

// Querier is what is needed of Postgres.
type Querier interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// Choice is what a guest decided about their data, as Postgres has it: the record that outlives Redis.
type Choice struct {
	Telemetry bool
	Marketing bool
	DecidedAt time.Time
	Cleared   bool // the session was cleared: its id is never used again
}

const (
	askWithin = 150 * time.Millisecond
	askPause  = time.Second // between two questions to a Postgres that does not answer
	unknown   = "?"         // consent in the hash while nobody could be asked
)

const selectChoice = `
	SELECT telemetry, marketing, decided_at, cleared_at IS NOT NULL
	FROM bff_consumer.session_choice
	WHERE guest_session_id = $1`

func scanChoice(row pgx.Row) (*Choice, error) {
	var c Choice
	err := row.Scan(&c.Telemetry, &c.Marketing, &c.DecidedAt, &c.Cleared)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return nil, nil
	case err != nil:
		return nil, err // and not a choice that nobody made
	}
	return &c, nil
}

// Recall completes a session that Redis lost: with what the guest decided, or, when it was cleared, with a new session
// instead. All others it returns as they are. It asks Postgres, within 150 ms; as long as that has no answer the
// session is not Known.
func (r *Room) Recall(ctx context.Context, v *Visit, s *Session) *Session {
	if !s.lost {
		return s
	}
	now := time.Now() // the pause is about the store, not about the guest
	if now.UnixNano() < r.asking.Load() {
		s.unasked = true
		return s
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), askWithin)
	defer cancel()
	c, err := scanChoice(r.db.QueryRow(ctx, selectChoice, s.ID))
	switch {
	case err != nil:
		r.asking.Store(now.Add(askPause).UnixNano())
		s.unasked = true
	case c != nil && c.Cleared:
		return r.fresh(v, mintID(r.ring, r.now()), true)
	default:
		s.lost, s.recalled = false, true
		if c != nil {
			s.Consent = Consent{c.Telemetry, c.Marketing}
		}
	}
	return s
}

// decide takes over what is known to be the guest's decision, whatever Redis has.
func (s *Session) decide(c Consent) {
	s.Consent, s.lost, s.unasked = c, false, false
	s.set("consentTelemetry", flag(c.Telemetry))
	s.set("consentMarketing", flag(c.Marketing))
}

// ReadChoice puts the read of what a guest decided into a batch; nil when they never did.
func ReadChoice(batch *pgx.Batch, sessionID string, into **Choice) {
	batch.Queue(selectChoice, sessionID).QueryRow(func(row pgx.Row) (err error) {
		*into, err = scanChoice(row)
		return err
	})
}

// Correct makes the session agree with the record, which counts when Redis missed a decision.
func (s *Session) Correct(c *Choice) {
	if c != nil && s.Consent != (Consent{c.Telemetry, c.Marketing}) {
		s.decide(Consent{c.Telemetry, c.Marketing})
	}
}

// Refuse puts on record, with what else is in batch, that a guest's browser refuses telemetry; what the guest decided
// stands. It goes along with the first rows of such a session, because who tells of those rows later asks the record
// and not the browser.
func Refuse(batch *pgx.Batch, sessionID string, at time.Time) {
	batch.Queue(`
		INSERT INTO bff_consumer.session_choice (guest_session_id, telemetry, marketing, decided_at)
		VALUES ($1, false, false, $2)
		ON CONFLICT (guest_session_id) DO NOTHING`, sessionID, at)
}

// ErrCleared is turn.ErrCleared.
var ErrCleared = turn.ErrCleared

// Cleared asks Postgres, within 150 ms, whether a session was cleared.
func (r *Room) Cleared(ctx context.Context, id string) (bool, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), askWithin)
	defer cancel()
	c, err := scanChoice(r.db.QueryRow(ctx, selectChoice, id))
	return c != nil && c.Cleared, err
}

// Decide records what the guest decides; nil leaves that part as it is. From its commit on no event of a session that
// refused is written. The session takes the decision over; its hash is the caller's to save. It fails with ErrCleared,
// or with what Postgres said.
func (r *Room) Decide(ctx context.Context, s *Session, telemetry, marketing *bool) error {
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
	s.decide(c)
	return nil
}

// Bury records, with what else is in batch, that a session is over: from its commit on nothing is written for it, and
// its id is not used again. It may be said twice.
func (r *Room) Bury(batch *pgx.Batch, s *Session) {
	batch.Queue(`
		INSERT INTO bff_consumer.session_choice AS c (guest_session_id, telemetry, marketing, decided_at, cleared_at)
		VALUES ($1, $2, $3, $4, $4)
		ON CONFLICT (guest_session_id) DO UPDATE
		SET cleared_at = coalesce(c.cleared_at, excluded.cleared_at)`,
		s.ID, s.Consent.Telemetry, s.Consent.Marketing, r.now())
}
