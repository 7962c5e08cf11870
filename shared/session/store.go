package session

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/go-json-experiment/json"
	lru "github.com/hashicorp/golang-lru/v2"
	"github.com/redis/go-redis/v9"

	"melmastoon.ghasi.io/bff-consumer/shared/keyring"
	"melmastoon.ghasi.io/bff-consumer/shared/locale"
	"melmastoon.ghasi.io/bff-consumer/shared/lua"
	"melmastoon.ghasi.io/bff-consumer/shared/money"
	"melmastoon.ghasi.io/bff-consumer/shared/redisclient"
)

// Store reads and writes guest sessions. Safe for concurrent use.
type Store struct {
	keys            redisclient.Keys
	ring            keyring.Ring // signs session ids
	peppers         keyring.Ring // hash what identifies a client
	db              Querier
	now             func() time.Time
	agentParser     agentParser
	preferenceCache *lru.Cache[string, preferences]
	consentRetryAt  atomic.Int64 // Unix ns until which Postgres is not asked again
}

const (
	maxCachedPreferences = 16_384      // guests per instance whose preferences differ from their headers
	touchInterval        = time.Minute // between writes of lastSeenAt: one with every request would double what a hit costs Redis
)

// New makes a Room. ring signs session ids and must keep retired keys for 365 days; peppers hash
// addresses and fingerprints; db has what guests decided.
func New(keys redisclient.Keys, ring, peppers keyring.Ring, db Querier, now func() time.Time) *Store {
	hints, err := lru.New[string, preferences](maxCachedPreferences)
	if err != nil {
		panic(err) // unreachable: the size is a positive constant
	}
	return &Store{keys: keys, ring: ring, peppers: peppers, db: db, now: now, agentParser: newAgentParser(peppers), preferenceCache: hints}
}

// Enqueue puts the read of the visit's session on the caller's pipeline; nil when the visit has none.
func (r *Store) Enqueue(ctx context.Context, pipe redis.Pipeliner, v *Request) *redis.SliceCmd {
	if v.ID == "" {
		return nil
	}
	return pipe.HMGet(ctx, r.keys.Session(v.ID), hashFields[:]...)
}

// hashFields are those of the session's hash, read by place: half of what HGETALL would send.
var hashFields = [...]string{
	"createdAt", "lastSeenAt", "localePreference", "localeSource", "currencyPreference", "currencySource",
	"cookieFingerprintHash", "bindingHash", "consentTelemetry", "consentMarketing", "campaignAttribution", "activeSearches",
	"wishlistVersion",
}

// fieldsByName are the fields that are there, by name.
func fieldsByName(values []any) map[string]string {
	found := make(map[string]string, len(hashFields))
	for i, v := range values {
		if s, ok := v.(string); ok && i < len(hashFields) {
			found[hashFields[i]] = s
		}
	}
	return found
}

// Resolve decides whose session this request belongs to, once the pipeline of Peek has run:
// the stored one; a new one when there is no genuine cookie, or when the cookie comes from another
// browser or system than it was given to (the old session is left untouched); an empty one of the same
// id when Redis lost it; a degraded one of the same id when Redis did not answer.
func (r *Store) Resolve(v *Request, read *redis.SliceCmd) *Session {
	if read == nil {
		return r.newSession(v, mintID(r.ring, r.now()), true)
	}
	values, err := read.Result()
	f := fieldsByName(values)
	switch {
	case err != nil:
		s := r.newSession(v, v.ID, false)
		s.Degraded = true
		return s
	case len(f) == 0:
		s := r.newSession(v, v.ID, false)
		s.needsConsent = true
		return s
	case !slices.Contains(v.bindings, f["bindingHash"]):
		return r.newSession(v, mintID(r.ring, r.now()), true)
	}
	s := r.fromHash(v, f)
	r.rememberPreferences(v, s)
	return s
}

// newSession is a session that is not in Redis yet.
func (r *Store) newSession(v *Request, id string, isNew bool) *Session {
	now := r.now()
	s := &Session{
		ID: id, CreatedAt: now, LastSeenAt: now, Fingerprint: v.Fingerprint, Campaign: v.campaign,
		Consent: Consent{Telemetry: !v.optedOut}, New: isNew, bindingHash: v.bindings[0],
	}
	s.Locale, s.LocaleSource = resolveLocale("", "", v)
	s.Currency, s.CurrencySource = resolveCurrency("", "", v)
	s.setField("lastSeenAt", formatMillis(now))
	return s
}

// fromHash is the session of a Redis hash, with what this visit changes about it.
func (r *Store) fromHash(v *Request, f map[string]string) *Session {
	s := &Session{
		ID: v.ID, CreatedAt: parseMillis(f["createdAt"]), LastSeenAt: r.now(), Fingerprint: f["cookieFingerprintHash"],
		Consent: Consent{Telemetry: f["consentTelemetry"] == "1", Marketing: f["consentMarketing"] == "1"},
		exists:  true, needsConsent: f["consentTelemetry"] == unknownConsent, wishlistVersion: f["wishlistVersion"],
		bindingHash: f["bindingHash"], searches: parseSearches(f["activeSearches"]),
	}
	if s.needsConsent {
		s.Consent.Telemetry = !v.optedOut
	}
	if s.LastSeenAt.Sub(parseMillis(f["lastSeenAt"])) >= touchInterval {
		s.setField("lastSeenAt", formatMillis(s.LastSeenAt))
	}
	s.Locale, s.LocaleSource = resolveLocale(locale.Tag(f["localePreference"]), Source(f["localeSource"]), v)
	s.Currency, s.CurrencySource = resolveCurrency(money.Currency(f["currencyPreference"]), Source(f["currencySource"]), v)
	s.setIfChanged(f, "localePreference", string(s.Locale))
	s.setIfChanged(f, "localeSource", string(s.LocaleSource))
	s.setIfChanged(f, "currencyPreference", string(s.Currency))
	s.setIfChanged(f, "currencySource", string(s.CurrencySource))
	s.setIfChanged(f, "cookieFingerprintHash", v.Fingerprint)
	s.setIfChanged(f, "bindingHash", v.bindings[0]) // moves to the newest pepper
	s.Fingerprint = v.Fingerprint
	if known := f["campaignAttribution"]; known != "" && json.Unmarshal([]byte(known), &s.Campaign) != nil {
		s.Campaign = nil // unreadable: as good as absent
	}
	if v.campaign != nil && !v.campaign.equal(s.Campaign) { // the last campaign that brought the guest counts
		s.Campaign = v.campaign
		s.setField("campaignAttribution", v.campaign.json())
	}
	return s
}

func (s *Session) setIfChanged(stored map[string]string, field, value string) {
	if stored[field] != value {
		s.setField(field, value)
	}
}

// toHash is the whole session as Redis keeps it.
func (s *Session) toHash() map[string]string {
	f := map[string]string{
		"createdAt": formatMillis(s.CreatedAt), "lastSeenAt": formatMillis(s.LastSeenAt),
		"localePreference": string(s.Locale), "localeSource": string(s.LocaleSource),
		"currencyPreference": string(s.Currency), "currencySource": string(s.CurrencySource),
		"cookieFingerprintHash": s.Fingerprint, "bindingHash": s.bindingHash,
		"consentTelemetry": formatBool(s.Consent.Telemetry), "consentMarketing": formatBool(s.Consent.Marketing),
	}
	if s.consentUnavailable {
		f["consentTelemetry"], f["consentMarketing"] = unknownConsent, unknownConsent
	}
	if s.Campaign != nil {
		f["campaignAttribution"] = s.Campaign.json()
	}
	if len(s.searches) > 0 {
		f["activeSearches"] = formatSearches(s.searches)
	}
	return f
}

// NeedsSave says whether Save has anything to write: something changed, or the last visit is a minute ago.
func (s *Session) NeedsSave() bool {
	return !s.Degraded && (!s.exists || s.consentRestored || len(s.changedFields) > 0)
}

// EnqueueSave puts what this request changed on the caller's pipeline, which lua.Exec runs, and renews the 30
// days of all that is kept of the session. history, when not nil, goes to the front of the search history.
// A session that was cleared meanwhile is not revived, and what the guest chose meanwhile stands; Saved
// tells.
func (r *Store) EnqueueSave(ctx context.Context, pipe redis.Pipeliner, s *Session, history *HistoryEntry) *redis.Cmd {
	v := lua.SessionUpdate{
		Session: r.keys.Session(s.ID), History: r.keys.SessionPart(s.ID, "history"), Cleared: r.clearedKey(s.ID),
		Lists:  []string{r.keys.SessionPart(s.ID, "wishlist"), r.keys.SessionPart(s.ID, "recent")},
		Create: !s.exists, TTL: TTL, Changes: s.changedFields, HistoryEntry: history.json(), MaxHistory: maxHistory,
	}
	switch {
	case v.Create:
		v.Defaults = s.toHash()
	case s.consentRestored: // what was read was a session that nobody could be asked about
		v.Defaults = map[string]string{"consentTelemetry": formatBool(s.Consent.Telemetry), "consentMarketing": formatBool(s.Consent.Marketing)}
	}
	if _, touched := s.changedFields["lastSeenAt"]; touched {
		r.enqueueLastSeen(ctx, pipe, s)
	}
	return lua.UpdateSession(ctx, pipe, v)
}

// SaveResult is what became of a session that was saved.
type SaveResult struct {
	Cleared  bool // it was cleared meanwhile, and nothing was written
	Missing  bool // Redis lost it meanwhile, and nothing was written
	OptedOut bool // telemetry was refused meanwhile
	Locale   *PreferenceChange
	Currency *PreferenceChange
}

// PreferenceChange of a preference by this visit: nobody else is told of the same one.
type PreferenceChange struct{ From, To, Trigger string }

// ResolveSave reads what the command of Save answered, once it has run.
func (r *Store) ResolveSave(s *Session, cmd *redis.Cmd) (SaveResult, error) {
	noted, err := lua.ParseSessionUpdate(cmd)
	if err != nil {
		return SaveResult{}, fmt.Errorf("session: save: %w", err)
	}
	saved := SaveResult{Cleared: noted.Cleared, Missing: noted.Missing, OptedOut: noted.TelemetryConsent == formatBool(false)}
	if noted.PreviousLocale != "" {
		saved.Locale = &PreferenceChange{noted.PreviousLocale, string(s.Locale), string(s.LocaleSource)}
	}
	if noted.PreviousCurrency != "" {
		saved.Currency = &PreferenceChange{noted.PreviousCurrency, string(s.Currency), currencyTrigger(s.CurrencySource)}
	}
	return saved, nil
}

// currencyTrigger says in the words of the event why a currency changed. X-Currency is what the guest picked in the
// client for this visit: not binding, but picked.
func currencyTrigger(source Source) string {
	if source == SourceHeader {
		return string(SourceExplicit)
	}
	return string(source)
}

func formatMillis(t time.Time) string { return strconv.FormatInt(t.UnixMilli(), 10) }

func parseMillis(s string) time.Time {
	ms, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}

func formatBool(b bool) string {
	if b {
		return "1"
	}
	return "0"
}
