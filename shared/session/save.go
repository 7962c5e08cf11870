package session

import (
	"context"
	"fmt"

	"github.com/redis/go-redis/v9"

	"melmastoon.ghasi.io/bff-consumer/shared/lua"
)

// NeedsSave reports whether EnqueueSave has anything to write: a field changed, or lastSeenAt is
// more than a minute old. A degraded session is never saved.
func (s *Session) NeedsSave() bool {
	return !s.Degraded && (!s.exists || s.consentRestored || len(s.changedFields) > 0)
}

// EnqueueSave queues the write of the changed fields on the caller's pipeline, which the caller
// runs with lua.Exec, and renews the 30 days of the hash and of the lists. It queues one script,
// and two commands more if lastSeenAt changed. history, if not nil, becomes the first entry of the
// list "history".
//
// The script decides atomically: it writes nothing for a session that the guest cleared or that
// Redis lost since Resolve, and it keeps preferences that the guest chose explicitly since then.
// ResolveSave reads its reply.
func (r *Store) EnqueueSave(ctx context.Context, pipe redis.Pipeliner, s *Session, history *HistoryEntry) *redis.Cmd {
	update := lua.SessionUpdate{
		Session: r.keys.Session(s.ID), History: r.keys.SessionPart(s.ID, "history"), Cleared: r.clearedKey(s.ID),
		Lists:  []string{r.keys.SessionPart(s.ID, "wishlist"), r.keys.SessionPart(s.ID, "recent")},
		Create: !s.exists, TTL: TTL, Changes: s.changedFields, HistoryEntry: history.json(), MaxHistory: maxHistory,
	}
	switch {
	case update.Create:
		update.Defaults = s.toHash()
	case s.consentRestored: // the hash has unknownConsent, from a request to which Postgres did not answer
		update.Defaults = map[string]string{"consentTelemetry": formatBool(s.Consent.Telemetry), "consentMarketing": formatBool(s.Consent.Marketing)}
	}
	if _, touched := s.changedFields["lastSeenAt"]; touched {
		r.enqueueLastSeen(ctx, pipe, s)
	}
	return lua.UpdateSession(ctx, pipe, update)
}

// SaveResult is the reply of Redis to EnqueueSave.
type SaveResult struct {
	Cleared  bool              // the guest cleared the session since Resolve, and nothing was written
	Missing  bool              // Redis lost the session since Resolve, and nothing was written
	OptedOut bool              // the hash says that the guest opted out of telemetry, perhaps since Resolve
	Locale   *PreferenceChange // nil: not changed by this request
	Currency *PreferenceChange // nil: not changed by this request
}

// PreferenceChange is a change of a preference. Of concurrent requests that make the same change,
// one alone gets it.
type PreferenceChange struct{ From, To, Trigger string }

// ResolveSave reads the reply to the command of EnqueueSave, once it has run. It returns the error
// of Redis.
func (r *Store) ResolveSave(s *Session, cmd *redis.Cmd) (SaveResult, error) {
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

// currencyTrigger returns the event's trigger of a currency change. X-Currency counts as an
// explicit choice there, although it does not bind: the guest picked it in the client.
func currencyTrigger(source Source) string {
	if source == SourceHeader {
		return string(SourceExplicit)
	}
	return string(source)
}
