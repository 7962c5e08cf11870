package session

import (
	"context"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/go-json-experiment/json"
	lru "github.com/hashicorp/golang-lru/v2"
	"github.com/redis/go-redis/v9"

	"melmastoon.ghasi.io/bff-consumer/shared/keyring"
	"melmastoon.ghasi.io/bff-consumer/shared/locale"
	"melmastoon.ghasi.io/bff-consumer/shared/money"
	"melmastoon.ghasi.io/bff-consumer/shared/redisclient"
)

// Store reads and writes guest sessions. Safe for concurrent use.
type Store struct {
	keys            redisclient.Keys
	ring            keyring.Ring // signs session ids
	peppers         keyring.Ring // hash the properties of clients
	db              Querier
	now             func() time.Time
	agentParser     agentParser
	preferenceCache *lru.Cache[string, preferences]
	consentRetryAt  atomic.Int64 // Unix ns until which RestoreConsent sends no query
}

const (
	maxCachedPreferences = 16_384 // guests per instance whose preferences differ from their headers
	// touchInterval is the time between writes of lastSeenAt. A write with each request would
	// double the Redis cost of a cache hit.
	touchInterval = time.Minute
)

// New returns a store. ring signs session ids and must keep retired keys for 365 days. peppers hash
// addresses and fingerprints. db has the guests' consent and must
// not be nil. now is the clock of sessions. New dials
// nothing and never fails, but neither ring nor peppers may be empty: methods would panic. The
// store caches up to 4,096 user agents and the preferences of up to 16,384 guests in memory.
func New(keys redisclient.Keys, ring, peppers keyring.Ring, db Querier, now func() time.Time) *Store {
	predictions, err := lru.New[string, preferences](maxCachedPreferences)
	if err != nil {
		panic(err) // unreachable: the size is a positive constant
	}
	return &Store{keys: keys, ring: ring, peppers: peppers, db: db, now: now, agentParser: newAgentParser(peppers), preferenceCache: predictions}
}

// Enqueue queues the read of the request's session on the caller's pipeline, an HMGET of 13 fields,
// and sends nothing. Without a genuine cookie, Enqueue queues nothing and returns nil, which
// Resolve accepts.
func (st *Store) Enqueue(ctx context.Context, pipe redis.Pipeliner, request *Request) *redis.SliceCmd {
	if request.ID == "" {
		return nil
	}
	return pipe.HMGet(ctx, st.keys.Session(request.ID), hashFields[:]...)
}

// hashFields are the fields of the session's hash. HMGET replies by position, in half the bytes of
// HGETALL.
var hashFields = [...]string{
	"createdAt", "lastSeenAt", "localePreference", "localeSource", "currencyPreference", "currencySource",
	"cookieFingerprintHash", "bindingHash", "consentTelemetry", "consentMarketing", "campaignAttribution", "activeSearches",
	"wishlistVersion",
}

// fieldsByName returns the fields that have a value.
func fieldsByName(values []any) map[string]string {
	found := make(map[string]string, len(hashFields))
	for i, v := range values {
		if s, ok := v.(string); ok && i < len(hashFields) {
			found[hashFields[i]] = s
		}
	}
	return found
}

// Resolve returns the session of the request, after the pipeline of Enqueue. It reads no store,
// never fails and never returns nil. It takes CPU and, for a stored session, a mutex of the process
// for a moment. It returns:
//
//   - the stored session, with the preferences of this request's headers as changes to save;
//   - a new session, without a genuine cookie (also without Redis), or with the cookie of another
//     browser or system (the other session stays untouched);
//   - an empty session of the same id, if Redis lost the session (see RestoreConsent);
//   - a degraded session of the same id, if Redis did not answer for any reason, a cancelled
//     context included.
func (st *Store) Resolve(request *Request, read *redis.SliceCmd) *Session {
	if read == nil {
		return st.newSession(request, mintID(st.ring, st.now()), true)
	}
	values, err := read.Result()
	f := fieldsByName(values)
	switch {
	case err != nil:
		s := st.newSession(request, request.ID, false)
		s.Degraded = true
		return s
	case len(f) == 0:
		s := st.newSession(request, request.ID, false)
		s.needsConsent = true
		return s
	case !slices.Contains(request.bindings, f["bindingHash"]):
		return st.newSession(request, mintID(st.ring, st.now()), true)
	}
	s := st.fromHash(request, f)
	st.rememberPreferences(request, s)
	return s
}

// newSession returns a session not yet in Redis.
func (st *Store) newSession(request *Request, id string, isNew bool) *Session {
	now := st.now()
	s := &Session{
		ID: id, CreatedAt: now, LastSeenAt: now, Fingerprint: request.Fingerprint, Campaign: request.campaign,
		Consent: Consent{Telemetry: !request.optedOut}, New: isNew, bindingHash: request.bindings[0],
	}
	s.Locale, s.LocaleSource = resolveLocale("", "", request)
	s.Currency, s.CurrencySource = resolveCurrency("", "", request)
	s.setField("lastSeenAt", formatMillis(now))
	return s
}

// fromHash returns the session of a Redis hash, with the changes of this request.
func (st *Store) fromHash(request *Request, f map[string]string) *Session {
	s := &Session{
		ID: request.ID, CreatedAt: parseMillis(f["createdAt"]), LastSeenAt: st.now(), Fingerprint: f["cookieFingerprintHash"],
		Consent: Consent{Telemetry: f["consentTelemetry"] == "1", Marketing: f["consentMarketing"] == "1"},
		exists:  true, needsConsent: f["consentTelemetry"] == unknownConsent, wishlistVersion: f["wishlistVersion"],
		bindingHash: f["bindingHash"], searches: parseSearches(f["activeSearches"]),
	}
	if s.needsConsent {
		s.Consent.Telemetry = !request.optedOut
	}
	if s.LastSeenAt.Sub(parseMillis(f["lastSeenAt"])) >= touchInterval {
		s.setField("lastSeenAt", formatMillis(s.LastSeenAt))
	}
	s.Locale, s.LocaleSource = resolveLocale(locale.Tag(f["localePreference"]), Source(f["localeSource"]), request)
	s.Currency, s.CurrencySource = resolveCurrency(money.Currency(f["currencyPreference"]), Source(f["currencySource"]), request)
	s.setIfChanged(f, "localePreference", string(s.Locale))
	s.setIfChanged(f, "localeSource", string(s.LocaleSource))
	s.setIfChanged(f, "currencyPreference", string(s.Currency))
	s.setIfChanged(f, "currencySource", string(s.CurrencySource))
	s.setIfChanged(f, "cookieFingerprintHash", request.Fingerprint)
	s.setIfChanged(f, "bindingHash", request.bindings[0]) // of the newest pepper
	s.Fingerprint = request.Fingerprint
	if known := f["campaignAttribution"]; known != "" && json.Unmarshal([]byte(known), &s.Campaign) != nil {
		s.Campaign = nil // unreadable: as if absent
	}
	if request.campaign != nil && !request.campaign.equal(s.Campaign) { // the last campaign counts
		s.Campaign = request.campaign
		s.setField("campaignAttribution", request.campaign.json())
	}
	return s
}

// setIfChanged marks a field as changed if the value differs from the stored value.
func (s *Session) setIfChanged(stored map[string]string, field, value string) {
	if stored[field] != value {
		s.setField(field, value)
	}
}

// toHash returns all fields of the hash, for a session missing in Redis.
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

func formatMillis(t time.Time) string { return strconv.FormatInt(t.UnixMilli(), 10) }

// parseMillis returns the zero time for a malformed value.
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
