// Package inbox owns the inbox tables: what others told us takes effect once, however often it arrives, and what
// cannot be read is kept for a person. It never knows what an event means.
package inbox

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"melmastoon.ghasi.io/bff-consumer/shared/postgres"
	"melmastoon.ghasi.io/bff-consumer/shared/problem"
	"melmastoon.ghasi.io/bff-consumer/shared/pubsubpush"
	"melmastoon.ghasi.io/bff-consumer/shared/web"
)

// Outcome is what became of a message. Each of them is an acknowledgement.
type Outcome string

// The outcomes.
const (
	Processed   Outcome = "done"   // it had its effect, or what an earlier attempt had left of it
	Duplicate   Outcome = "again"  // it had its effect before
	Quarantined Outcome = "parked" // it never will have one; a person looks
)

// Report is what became of a message.
type Report struct {
	Outcome  Outcome `json:"outcome"`
	EventID  string  `json:"eventId,omitzero"`
	Removed  int     `json:"removed"`           // cache entries
	Conflict bool    `json:"conflict,omitzero"` // parked because an event of the same id said something else
	Reason   string  `json:"reason,omitzero"`   // for being parked
}

// The alarms, for alerts to find.
const (
	AlertConflict    = "inbox-conflict"
	AlertQuarantined = "inbox-parked"
)

// Effect is what one event brings about.
type Effect struct {
	// Record is the effect in Postgres, part of the transaction that notes the event. It runs once. nil: there is
	// none.
	InTx func(ctx context.Context, tx pgx.Tx) error
	// Tell carries the effect to where there are no transactions, after the first is committed, and says how many
	// cache entries it removed. It runs until it has succeeded once, and may run again, also beside itself.
	AfterCommit func(ctx context.Context) (removed int, err error)
}

// Inbox receives. Safe for concurrent use.
type Inbox struct{ db *pgxpool.Pool }

// New makes an Inbox.
func New(db *pgxpool.Pool) *Inbox { return &Inbox{db} }

// Receive takes the message in a request to its effect. subject is the one event that the subscription is for; read
// makes its work of a payload that has the form of the subject's schema, or says why there is none. An error means
// that the message is to be delivered again: Postgres, or what Tell needs, is away.
func (b *Inbox) Receive(r *http.Request, subject string, read func(payload []byte) (Effect, error)) (Report, error) {
	ctx := r.Context()
	m, err := pubsubpush.Decode(r)
	if wrong, ok := errors.AsType[*pubsubpush.MalformedError](err); ok {
		return b.quarantine(ctx, subject, &m, Report{Reason: wrong.Reason})
	}
	if err != nil {
		return Report{}, err
	}
	e, err := parse(subject, m.Data)
	if err != nil {
		return b.quarantine(ctx, subject, &m, Report{EventID: e.ID, Reason: err.Error()})
	}
	work, err := read(e.Payload)
	if err != nil {
		return b.quarantine(ctx, subject, &m, Report{EventID: e.ID, Reason: err.Error()})
	}
	report, err := b.apply(ctx, e, work)
	if err == nil && report.Conflict {
		return b.quarantine(ctx, subject, &m, report)
	}
	if err != nil {
		return Report{}, err
	}
	logOutcome(ctx, &m, report)
	return report, nil
}

// apply has the effect of an event. Its two steps may be separated by a crash: the next delivery then finds the event
// noted but not processed, and takes the second step again.
func (b *Inbox) apply(ctx context.Context, e event, work Effect) (Report, error) {
	report := Report{Outcome: Processed, EventID: e.ID}
	known, err := b.recordEvent(ctx, e, work)
	switch {
	case err != nil:
		return report, postgres.Problem(err)
	case known.conflict:
		report.Conflict, report.Reason = true, "an event of the same id said something else"
		return report, nil
	case known.processed:
		report.Outcome = Duplicate
		return report, nil
	}
	if report.Removed, err = work.AfterCommit(ctx); err != nil {
		return report, retryLater(fmt.Errorf("inbox: %s: %w", e.ID, err))
	}
	if _, err = b.db.Exec(ctx, `
		UPDATE bff_consumer.inbox
		SET processed_at = now()
		WHERE event_id = $1::text
		  AND processed_at IS NULL`, e.ID); err != nil {
		return report, postgres.Problem(fmt.Errorf("inbox: note as processed: %w", err))
	}
	return report, nil
}

// priorState is what the inbox has of an event that arrives.
type priorState struct {
	processed bool
	conflict  bool // another event of the same id
}

// recordEvent notes the event and has its effect in Postgres, both or neither. Of two who come at once, one waits for
// the other.
func (b *Inbox) recordEvent(ctx context.Context, e event, work Effect) (k priorState, err error) {
	err = pgx.BeginFunc(ctx, b.db, func(tx pgx.Tx) error {
		inserted, err := tx.Exec(ctx, `
			INSERT INTO bff_consumer.inbox (event_id, subject, digest)
			VALUES ($1::text, $2, $3)
			ON CONFLICT (event_id) DO NOTHING`, e.ID, e.Subject, e.Digest[:])
		if err != nil {
			return fmt.Errorf("inbox: note the event: %w", err)
		}
		if inserted.RowsAffected() == 1 {
			if work.InTx == nil {
				return nil
			}
			return work.InTx(ctx, tx)
		}
		var digest []byte
		err = tx.QueryRow(ctx, `
			SELECT digest, processed_at IS NOT NULL
			FROM bff_consumer.inbox
			WHERE event_id = $1::text`, e.ID).Scan(&digest, &k.processed)
		if err != nil {
			return fmt.Errorf("inbox: look the event up: %w", err)
		}
		k.conflict = string(digest) != string(e.Digest[:])
		return nil
	})
	return k, err
}

// retryLater is the answer while what Tell needs is away, or not well: come again.
func retryLater(err error) error {
	return problem.New(problem.UpstreamUnavailable, "This cannot be carried out at present. Please deliver it again.", err).WithRetryAfter(time.Second)
}

// logOutcome puts what became of a message in the request's log record.
func logOutcome(ctx context.Context, m *pubsubpush.Message, report Report) {
	call := web.FromContext(ctx)
	call.AddLogField("outcome", string(report.Outcome))
	call.AddLogField("eventId", report.EventID)
	call.AddLogField("attempt", m.Attempt)
	switch {
	case report.Conflict:
		call.MarkAlert(AlertConflict)
	case report.Outcome == Quarantined:
		call.MarkAlert(AlertQuarantined)
	default:
		call.AddLogField("removed", report.Removed)
	}
	if report.Reason != "" {
		call.AddLogField("reason", report.Reason)
	}
}
