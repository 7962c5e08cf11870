package session

import (
	"context"
	"fmt"

	"github.com/redis/go-redis/v9"

	"melmastoon.ghasi.io/bff-consumer/shared/lua"
)

// NeedsSave reports whether EnqueueSave has anything to write: a session not in Redis, a changed
// field, a consent restored from Postgres, or a lastSeenAt at least a minute old. It is false for a
// degraded session, which is never saved. CPU only.
func (s *Session) NeedsSave() bool {
	return !s.Degraded && (!s.exists || s.consentRestored || len(s.changedFields) > 0)
}

// EnqueueSave queues the write of the changed fields on the caller's pipeline; the caller runs the
// pipeline with lua.Exec. The write renews the 30 days of the hash and the lists, and pushes
// history (may be nil) onto the list "history". It is a single script, plus two commands if
// lastSeenAt changed. EnqueueSave sends nothing and never returns nil. It does not check NeedsSave:
// the caller must not save a degraded session. It panics if history has no JSON form.
//
// The script decides atomically. For a session cleared by the guest, or lost by Redis since
// Resolve, the script writes nothing; the two commands run nevertheless. An explicit preference set
// since Resolve stays, unless s has an explicit choice too: of two, the later write wins.
// ResolveSave reads the reply. Without Redis nothing is saved.
func (st *Store) EnqueueSave(ctx context.Context, pipe redis.Pipeliner, s *Session, history *HistoryEntry) *redis.Cmd {
	update := lua.SessionUpdate{
		Session: st.keys.Session(s.ID), History: st.keys.SessionPart(s.ID, "history"), Cleared: st.clearedKey(s.ID),
		Lists:  []string{st.keys.SessionPart(s.ID, "wishlist"), st.keys.SessionPart(s.ID, "recent")},
		Create: !s.exists, TTL: TTL, Changes: s.changedFields, HistoryEntry: history.json(), MaxHistory: maxHistory,
	}
	switch {
	case update.Create:
		update.Defaults = s.toHash()
	// The hash has unknownConsent, from a request without an answer of Postgres.
	case s.consentRestored:
		update.Defaults = map[string]string{"consentTelemetry": formatBool(s.Consent.Telemetry), "consentMarketing": formatBool(s.Consent.Marketing)}
	}
	if _, touched := s.changedFields["lastSeenAt"]; touched {
		st.enqueueLastSeen(ctx, pipe, s)
	}
	return lua.UpdateSession(ctx, pipe, update)
}

// SaveResult is the reply of Redis to EnqueueSave.
type SaveResult struct {
	Cleared  bool              // the guest cleared the session since Resolve, and nothing was written
	Missing  bool              // Redis lost the session since Resolve, and nothing was written
	OptedOut bool              // the guest opted out of telemetry, perhaps since Resolve
	Locale   *PreferenceChange // nil: not changed by this request
	Currency *PreferenceChange // nil: not changed by this request
}

// PreferenceChange is a change of a preference. Of several concurrent requests with the same
// change, a single request gets the PreferenceChange.
type PreferenceChange struct{ From, To, Trigger string }

// ResolveSave reads the reply to EnqueueSave, after the pipeline. CPU only. It returns a zero
// SaveResult and the error of Redis without a reply; Redis may have saved the session then.
func (st *Store) ResolveSave(s *Session, cmd *redis.Cmd) (SaveResult, error) {
	reply, err := lua.ParseSessionUpdate(cmd)
	if err != nil {
		return SaveResult{}, fmt.Errorf("session: save: %w", err)
	}
	saved := SaveResult{Cleared: reply.Cleared, Missing: reply.Missing, OptedOut: reply.TelemetryConsent == formatBool(false)}
	if reply.PreviousLocale != "" {
		saved.Locale = &PreferenceChange{reply.PreviousLocale, string(s.Locale), string(s.LocaleSource)}
	}
	if reply.PreviousCurrency != "" {
		saved.Currency = &PreferenceChange{reply.PreviousCurrency, string(s.Currency), currencyTrigger(s.CurrencySource)}
	}
	return saved, nil
}

// currencyTrigger returns the event's trigger of a currency change. The event reports X-Currency as
// an explicit choice, because the guest picked the currency in the client, although X-Currency does
// not bind.
func currencyTrigger(source Source) string {
	if source == SourceHeader {
		return string(SourceExplicit)
	}
	return string(source)
}
