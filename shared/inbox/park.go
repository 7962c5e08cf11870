package inbox

import (
	"context"
	"crypto/sha256"
	"fmt"
	"strings"

	"melmastoon.ghasi.io/bff-consumer/shared/digest"
	"melmastoon.ghasi.io/bff-consumer/shared/postgres"
	"melmastoon.ghasi.io/bff-consumer/shared/push"
)

const (
	maxParked = 64 << 10 // bytes of a body that are kept
	maxReason = 500      // bytes
	maxID     = 200      // bytes of a message id that is kept as it is
)

// Subscription names the subscription of ours that a subject of the platform comes by.
func Subscription(subject string) string {
	return "bff-consumer." + strings.TrimPrefix(subject, "melmastoon.")
}

// park keeps a message for a person. Parked once, it stays: the same message again is the same row.
func (b *Inbox) park(ctx context.Context, subject string, m *push.Message, report Report) (Report, error) {
	report.Outcome = Parked
	report.Reason = text(report.Reason, maxReason)
	body := append([]byte{}, m.Body[:min(len(m.Body), maxParked)]...) // nil would be NULL
	_, err := b.db.Exec(ctx, `
		INSERT INTO bff_consumer.inbox_parked (subscription, message_id, reason, body)
		VALUES ($1, $2, $3, $4)
		ON CONFLICT (subscription, message_id) DO NOTHING`,
		Subscription(subject), messageID(m), report.Reason, body)
	if err != nil {
		return Report{}, postgres.Problem(fmt.Errorf("inbox: park: %w", err))
	}
	note(ctx, m, report)
	return report, nil
}

// messageID is the broker's id, when the message has one that Postgres would take; else one made of what arrived.
func messageID(m *push.Message) string {
	if m.ID != "" && m.ID == text(m.ID, maxID) {
		return m.ID
	}
	sum := sha256.New()
	fmt.Fprintf(sum, "%d:%s", len(m.ID), m.ID)
	sum.Write(m.Body)
	return digest.Text(sum.Sum(nil))
}

// text is s as Postgres takes it: valid, without NUL, and not long.
func text(s string, most int) string {
	s = strings.ReplaceAll(strings.ToValidUTF8(s, "?"), "\x00", "?")
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "") // without half a character at the end
	}
	return s
}
