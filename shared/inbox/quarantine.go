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
	maxStoredBody = 64 << 10 // bytes of a body that are kept
	maxReason     = 500      // bytes
	maxMessageID  = 200      // bytes of a message id that is kept as it is
)

// SubscriptionName names the subscription of ours that a subject of the platform comes by.
func SubscriptionName(subject string) string {
	return "bff-consumer." + strings.TrimPrefix(subject, "melmastoon.")
}

// quarantine keeps a message for a person. Parked once, it stays: the same message again is the same row. Another message under
// its id is a row of its own: only a broker's ids are its alone, and only while it lives.
func (b *Inbox) quarantine(ctx context.Context, subject string, m *pubsubpush.Message, report Report) (Report, error) {
	report.Outcome = Quarantined
	report.Reason = sanitize(report.Reason, maxReason)
	body := append([]byte{}, m.Body[:min(len(m.Body), maxStoredBody)]...) // nil would be NULL
	there, err := b.insertQuarantined(ctx, subject, messageID(m), report.Reason, body)
	if err == nil && there != nil && !bytes.Equal(withoutDeliveryAttempt(there), withoutDeliveryAttempt(body)) {
		_, err = b.insertQuarantined(ctx, subject, digestID(m.ID, withoutDeliveryAttempt(body)), report.Reason, body)
	}
	if err != nil {
		return Report{}, postgres.Problem(fmt.Errorf("inbox: park: %w", err))
	}
	logOutcome(ctx, m, report)
	return report, nil
}

// insertQuarantined writes a row unless there is one of that id; then it returns the body of that.
func (b *Inbox) insertQuarantined(ctx context.Context, subject, message, reason string, body []byte) (there []byte, err error) {
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
		  AND message_id = $2`, SubscriptionName(subject), message).Scan(&there)
	return there, err
}

// withoutDeliveryAttempt is a body without what changes from one delivery of a message to the next.
func withoutDeliveryAttempt(body []byte) []byte {
	var whole map[string]jsontext.Value
	if json.Unmarshal(body, &whole) != nil || whole["deliveryAttempt"] == nil {
		return body
	}
	delete(whole, "deliveryAttempt")
	rest, err := json.Marshal(whole, json.Deterministic(true))
	if err != nil {
		return body // unreachable: it was read from JSON
	}
	return rest
}

// messageID is the broker's id, when the message has one that Postgres would take; else one made of what arrived.
func messageID(m *pubsubpush.Message) string {
	if m.ID != "" && m.ID == sanitize(m.ID, maxMessageID) {
		return m.ID
	}
	return digestID(m.ID, m.Body)
}

func digestID(message string, body []byte) string {
	sum := sha256.New()
	fmt.Fprintf(sum, "%d:%s", len(message), message)
	sum.Write(body)
	return digest.Format(sum.Sum(nil))
}

// sanitize is s as Postgres takes it: valid, without NUL, and not long.
func sanitize(s string, most int) string {
	s = strings.ReplaceAll(strings.ToValidUTF8(s, "?"), "\x00", "?")
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "") // without half a character at the end
	}
	return s
}
