package inbox

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"melmastoon.ghasi.io/bff-consumer/shared/digest"
	"melmastoon.ghasi.io/bff-consumer/shared/postgres"
	"melmastoon.ghasi.io/bff-consumer/shared/pubsubpush"
)

const (
	maxStoredBody = 64 << 10 // bytes of a stored body
	maxReason     = 500      // bytes
	maxMessageID  = 200      // bytes; a longer message id is replaced by a digest
)

// SubscriptionName returns the name of our subscription to a subject of the platform:
// "bff-consumer." and the subject without its prefix "melmastoon.". SubscriptionName accepts any
// text and never fails.
func SubscriptionName(subject string) string {
	return "bff-consumer." + strings.TrimPrefix(subject, "melmastoon.")
}

// quarantine stores a message in inbox_parked: up to 64 KiB of the body and up to 500 bytes of the
// reason. A repeated delivery of the message adds no row. Another message with the same id gets a
// row under a digest: message ids are unique only for one broker and only while it exists.
// quarantine takes one to four statements, and fails with 503 without Postgres, so that Pub/Sub
// delivers the message again.
func (b *Inbox) quarantine(ctx context.Context, subject string, m *pubsubpush.Message, report Report) (Report, error) {
	report.Outcome = Quarantined
	report.Reason = sanitize(report.Reason, maxReason)
	body := append([]byte{}, m.Body[:min(len(m.Body), maxStoredBody)]...) // nil would become NULL
	stored, err := b.insertQuarantined(ctx, subject, messageID(m), report.Reason, body)
	if err == nil && stored != nil && !bytes.Equal(withoutDeliveryAttempt(stored), withoutDeliveryAttempt(body)) {
		_, err = b.insertQuarantined(ctx, subject, digestID(m.ID, withoutDeliveryAttempt(body)), report.Reason, body)
	}
	if err != nil {
		return Report{}, postgres.Problem(fmt.Errorf("inbox: quarantine: %w", err))
	}
	logOutcome(ctx, m, report)
	return report, nil
}

// insertQuarantined inserts a row. If the message id is in use it inserts nothing and returns the
// stored body of that row.
func (b *Inbox) insertQuarantined(ctx context.Context, subject, message, reason string, body []byte) (stored []byte, err error) {
	tag, err := b.db.Exec(ctx, `
		INSERT INTO bff_consumer.inbox_parked (subscription, message_id, reason, body)
		VALUES ($1, $2, $3, $4)
		ON CONFLICT (subscription, message_id) DO NOTHING`,
		SubscriptionName(subject), message, reason, body)
	if err != nil || tag.RowsAffected() == 1 {
		return nil, err
	}
	err = b.db.QueryRow(ctx, `
		SELECT body
		FROM bff_consumer.inbox_parked
		WHERE subscription = $1
		  AND message_id = $2`, SubscriptionName(subject), message).Scan(&stored)
	return stored, err
}

// withoutDeliveryAttempt returns a push body without deliveryAttempt, the only member that changes
// between deliveries of a message. It returns any other body unchanged.
func withoutDeliveryAttempt(body []byte) []byte {
	var whole map[string]jsontext.Value
	if json.Unmarshal(body, &whole) != nil || whole["deliveryAttempt"] == nil {
		return body
	}
	delete(whole, "deliveryAttempt")
	rest, err := json.Marshal(whole, json.Deterministic(true))
	if err != nil {
		return body // unreachable: the values came from JSON
	}
	return rest
}

// messageID returns the broker's message id, or a digest of id and body when the id is empty,
// longer than 200 bytes or no text for Postgres.
func messageID(m *pubsubpush.Message) string {
	if m.ID != "" && m.ID == sanitize(m.ID, maxMessageID) {
		return m.ID
	}
	return digestID(m.ID, m.Body)
}

// digestID returns a digest of a message id and a body.
func digestID(message string, body []byte) string {
	sum := sha256.New()
	fmt.Fprintf(sum, "%d:%s", len(message), message)
	sum.Write(body)
	return digest.Format(sum.Sum(nil))
}

// sanitize returns s as valid UTF-8 without NUL, cut to limit bytes.
func sanitize(s string, limit int) string {
	s = strings.ReplaceAll(strings.ToValidUTF8(s, "?"), "\x00", "?")
	if len(s) > limit {
		s = strings.ToValidUTF8(s[:limit], "") // drops half a character at the end
	}
	return s
}
