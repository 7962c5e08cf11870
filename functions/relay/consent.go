package relay

import (
	"context"
	"slices"
	"sync"
	"time"

	"melmastoon.ghasi.io/bff-consumer/shared/outbox"
)

// consentMaxAge is the age up to which a request trusts the last read of consents.
var consentMaxAge = 2 * time.Millisecond // changed by tests

// consentState is the last read of the consents of a batch's sessions.
type consentState struct {
	mu        sync.Mutex // also serializes queries of the batch's transaction
	readAt    time.Time
	bySession map[string]*outbox.Consent // of guests who refused telemetry or cleared the session
	unknown   bool                       // the last read failed
}

// hasConsent reports whether a row of the session may be sent to the topic. It reads the consents
// of the whole batch again when the last read is older than 2 ms: one round trip, at most 3 s. So a
// request starts at most 2 ms after a refusal was committed. The session of a refused row is marked
// for deletion.
//
// Without Postgres it returns false for the rest of the batch: nothing could be marked either.
func (b *batch) hasConsent(session, topic string) bool {
	if session == "" {
		return true
	}
	c := &b.consent
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := time.Now(); !c.unknown && now.Sub(c.readAt) > consentMaxAge {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(b.ctx), queryTimeout)
		defer cancel()
		var sessions []string
		for _, row := range b.rows.Rows {
			sessions = append(sessions, row.Session)
		}
		consents, err := b.rows.Consents(ctx, slices.Compact(sessions))
		c.readAt, c.bySession, c.unknown = now, consents, err != nil
	}
	if c.unknown {
		return false
	}
	if c.bySession[session].Blocks(topic) {
		b.mark(func(m *outbox.Marks) { m.OptedOut = append(m.OptedOut, session) })
		return false
	}
	return true
}
