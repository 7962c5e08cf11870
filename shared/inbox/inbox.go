// Package inbox owns the tables inbox and inbox_parked. Every received event takes effect once,
// however often Pub/Sub delivers it; an unreadable message is quarantined for an operator. The
// package never knows the meaning of an event: the caller supplies the effect.
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

// Outcome is the result of a message. Every outcome acknowledges the message.
type Outcome string

// The outcomes.
const (
	Processed   Outcome = "done"   // the effect is applied, or the rest of it after an interrupted attempt
	Duplicate   Outcome = "again"  // an earlier delivery applied the effect
	Quarantined Outcome = "parked" // the message has no effect and waits for an operator
)

// Report is the response to a message.
type Report struct {
	Outcome Outcome `json:"outcome"`
	EventID string  `json:"eventId,omitzero"`
	Removed int     `json:"removed"` // deleted cache entries
	// quarantined because an event with the same id has other content
	Conflict bool   `json:"conflict,omitzero"`
	Reason   string `json:"reason,omitzero"` // of the quarantine
}

// The values of the log field alarm. Alerts filter by these values.
const (
	AlertConflict    = "inbox-conflict"
	AlertQuarantined = "inbox-parked"
)

// Effect is the effect of an event.
type Effect struct {
	// InTx applies the effect in Postgres, in the transaction that records the event. Its result is
	// committed at most once. nil means no effect in Postgres.
	InTx func(ctx context.Context, tx pgx.Tx) error
	// AfterCommit applies the effect outside Postgres, after the commit, and returns the number of
	// deleted cache entries. Deliveries repeat AfterCommit until the first success. AfterCommit may
	// run several times, also concurrently, so it must be idempotent.
	AfterCommit func(ctx context.Context) (removed int, err error)
}

// Inbox receives events. Safe for concurrent use.
type Inbox struct{ db *pgxpool.Pool }

// New returns an Inbox on db. New dials nothing and cannot fail.
func New(db *pgxpool.Pool) *Inbox { return &Inbox{db} }

// Receive decodes the message in r (see pubsubpush.Decode), validates the event against the schema
// of subject, and applies the effect that the function effect returns for the payload. AfterCommit
// must not be nil. A message is quarantined if it is unreadable, over 1 MiB or invalid, if it is an
// event of another subject, if subject has no schema, or if effect returns an error, whose text is
// the reason. An event id with other content than before is quarantined with Report.Conflict. The
// log record gets outcome, eventId, attempt, removed and reason, and a quarantine marks an alert.
//
// A new event costs four round trips to Postgres, besides InTx and AfterCommit; a duplicate costs
// four. A quarantine costs one to four, after a conflict four more. A delivery waits for a
// concurrent transaction of the same event id. The context of r sets the time limit. The first call
// of a process compiles all schemas, in some milliseconds, while other calls wait.
//
// An error asks Pub/Sub to deliver the message again, with a zero Report: a 503 problem when
// Postgres is unavailable or AfterCommit fails for any reason, any other error of Effect.InTx or
// Postgres as it is, and a 400 problem for a truncated request. After an error of AfterCommit the
// change of InTx stays committed, and the next delivery repeats AfterCommit only.
func (b *Inbox) Receive(r *http.Request, subject string, effect func(payload []byte) (Effect, error)) (Report, error) {
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
	work, err := effect(e.Payload)
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

// apply records the event with its effect in Postgres, and then runs AfterCommit. After a crash
// between the two steps, the next delivery finds the event recorded but not processed, and repeats
// the second step.
func (b *Inbox) apply(ctx context.Context, e event, work Effect) (Report, error) {
	report := Report{Outcome: Processed, EventID: e.ID}
	known, err := b.recordEvent(ctx, e, work)
	switch {
	case err != nil:
		return report, postgres.Problem(err)
	case known.conflict:
		report.Conflict, report.Reason = true, "an event with the same id has other content"
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
		return report, postgres.Problem(fmt.Errorf("inbox: mark as processed: %w", err))
	}
	return report, nil
}

// priorState describes an event already in the inbox. It is zero for a new event.
type priorState struct {
	processed bool
	conflict  bool // the recorded event with this id has other content
}

// recordEvent inserts the event and applies its effect in Postgres, in one transaction. Of two
// concurrent deliveries the second waits for the first.
func (b *Inbox) recordEvent(ctx context.Context, e event, work Effect) (k priorState, err error) {
	err = pgx.BeginFunc(ctx, b.db, func(tx pgx.Tx) error {
		inserted, err := tx.Exec(ctx, `
			INSERT INTO bff_consumer.inbox (event_id, subject, digest)
			VALUES ($1::text, $2, $3)
			ON CONFLICT (event_id) DO NOTHING`, e.ID, e.Subject, e.Digest[:])
		if err != nil {
			return fmt.Errorf("inbox: record the event: %w", err)
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
			return fmt.Errorf("inbox: read the event: %w", err)
		}
		k.conflict = string(digest) != string(e.Digest[:])
		return nil
	})
	return k, err
}

// retryLater returns the 503 problem for an error of AfterCommit, with Retry-After of 1 s.
func retryLater(err error) error {
	return problem.New(problem.UpstreamUnavailable, "The event cannot be applied at present. Please deliver it again.", err).WithRetryAfter(time.Second)
}

// logOutcome adds the report to the request's log record and marks an alert for a quarantined
// message.
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
