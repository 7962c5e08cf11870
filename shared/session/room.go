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
	"melmastoon.ghasi.io/bff-consumer/shared/keyspace"
	"melmastoon.ghasi.io/bff-consumer/shared/locale"
	"melmastoon.ghasi.io/bff-consumer/shared/lua"
	"melmastoon.ghasi.io/bff-consumer/shared/money"
)

// Room reads and writes guest sessions. Safe for concurrent use.
type Room struct {
	keys    keyspace.Keys
	ring    keyring.Ring // signs session ids
	peppers keyring.Ring // hash what identifies a client
	db      Querier
	now     func() time.Time
	agents  agents
	hints   *lru.Cache[string, preferences]
	asking  atomic.Int64 // Unix ns until which Postgres is not asked again
}

const (
	knownHints = 16_384      // guests per instance whose preferences differ from their headers
	touchEvery = time.Minute // between writes of lastSeenAt: one with every request would double what a hit costs Redis
)

// New makes a Room. ring signs session ids and must keep retired keys for 365 days; peppers hash
// addresses and fingerprints; db has what guests decided.
func New(keys keyspace.Keys, ring, peppers keyring.Ring, db Querier, now func() time.Time) *Room {
	hints, err := lru.New[string, preferences](knownHints)
	if err != nil {
		panic(err) // unreachable: the size is a positive constant
	}
	return &Room{keys: keys, ring: ring, peppers: peppers, db: db, now: now, agents: newAgents(peppers), hints: hints}
}

// Peek puts the read of the visit's session on the caller's pipeline; nil when the visit has none.
func (r *Room) Peek(ctx context.Context, pipe redis.Pipeliner, v *Visit) *redis.SliceCmd {
	if v.ID == "" {
		return nil
	}
	return pipe.HMGet(ctx, r.keys.Session(v.ID), fields[:]...)
}

// fields are those of the session's hash, read by place: half of what HGETALL would send.
var fields = [...]string{
	"createdAt", "lastSeenAt", "localePreference", "localeSource", "currencyPreference", "currencySource",
	"cookieFingerprintHash", "bindingHash", "consentTelemetry", "consentMarketing", "campaignAttribution", "activeSearches",
	"wishlistVersion",
}

// byName are the fields that are there, by name.
func byName(values []any) map[string]string {
	found := make(map[string]string, len(fields))
	for i, v := range values {
		if s, ok := v.(string); ok && i < len(fields) {
			found[fields[i]] = s
		}
	}
	return found
}

// Settle decides whose session this request belongs to, once the pipeline of Peek has run:
// the stored one; a new one when there is no genuine cookie, or when the cookie comes from another
// browser or system than it was given to (the old session is left untouched); an empty one of the same
// id when Redis lost it; a degraded one of the same id when Redis did not answer.
func (r *Room) Settle(v *Visit, read *redis.SliceCmd) *Session {
	if read == nil {
		return r.fresh(v, mintID(r.ring, r.now()), true)
	}
	values, err := read.Result()
	f := byName(values)
	switch {
	case err != nil:
		s := r.fresh(v, v.ID, false)
		s.Degraded = true
		return s
	case len(f) == 0:
		s := r.fresh(v, v.ID, false)
		s.lost = true
		return s
	case !slices.Contains(v.bindings, f["bindingHash"]):
		return r.fresh(v, mintID(r.ring, r.now()), true)
	}
	s := r.stored(v, f)
	r.learn(v, s)
	return s
}

// fresh is a session that is not in Redis yet.
func (r *Room) fresh(v *Visit, id string, isNew bool) *Session {
	now := r.now()
	s := &Session{
		ID: id, CreatedAt: now, LastSeenAt: now, Fingerprint: v.Fingerprint, Campaign: v.campaign,
		Consent: Consent{Telemetry: !v.refusesLogs}, New: isNew, binding: v.bindings[0],
	}
	s.Locale, s.LocaleSource = chooseLocale("", "", v)
	s.Currency, s.CurrencySource = chooseCurrency("", "", v)
	s.set("lastSeenAt", formatMillis(now))
	return s
}

// stored is the session of a Redis hash, with what this visit changes about it.
func (r *Room) stored(v *Visit, f map[string]string) *Session {
	s := &Session{
		ID: v.ID, CreatedAt: parseMillis(f["createdAt"]), LastSeenAt: r.now(), Fingerprint: f["cookieFingerprintHash"],
		Consent: Consent{Telemetry: f["consentTelemetry"] == "1", Marketing: f["consentMarketing"] == "1"},
		stored:  true, lost: f["consentTelemetry"] == unknown, wishlist: f["wishlistVersion"],
		binding: f["bindingHash"], searches: parseSearches(f["activeSearches"]),
	}
	if s.lost {
		s.Consent.Telemetry = !v.refusesLogs
	}
	if s.LastSeenAt.Sub(parseMillis(f["lastSeenAt"])) >= touchEvery {
		s.set("lastSeenAt", formatMillis(s.LastSeenAt))
	}
	s.Locale, s.LocaleSource = chooseLocale(locale.Tag(f["localePreference"]), Source(f["localeSource"]), v)
	s.Currency, s.CurrencySource = chooseCurrency(money.Currency(f["currencyPreference"]), Source(f["currencySource"]), v)
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
	if v.campaign != nil && !v.campaign.same(s.Campaign) { // the last campaign that brought the guest counts
		s.Campaign = v.campaign
		s.set("campaignAttribution", v.campaign.json())
	}
	return s
}

func (s *Session) setIfChanged(stored map[string]string, field, value string) {
	if stored[field] != value {
		s.set(field, value)
	}
}

// hash is the whole session as Redis keeps it.
func (s *Session) hash() map[string]string {
	f := map[string]string{
		"createdAt": formatMillis(s.CreatedAt), "lastSeenAt": formatMillis(s.LastSeenAt),
		"localePreference": string(s.Locale), "localeSource": string(s.LocaleSource),
		"currencyPreference": string(s.Currency), "currencySource": string(s.CurrencySource),
		"cookieFingerprintHash": s.Fingerprint, "bindingHash": s.binding,
		"consentTelemetry": flag(s.Consent.Telemetry), "consentMarketing": flag(s.Consent.Marketing),
	}
	if s.unasked {
		f["consentTelemetry"], f["consentMarketing"] = unknown, unknown
	}
	if s.Campaign != nil {
		f["campaignAttribution"] = s.Campaign.json()
	}
	if len(s.searches) > 0 {
		f["activeSearches"] = formatSearches(s.searches)
	}
	return f
}

// Unsaved says whether Save has anything to write: something changed, or the last visit is a minute ago.
func (s *Session) Unsaved() bool {
	return !s.Degraded && (!s.stored || s.recalled || len(s.changed) > 0)
}

// Save puts what this request changed on the caller's pipeline, which lua.Exec runs, and renews the 30
// days of all that is kept of the session. history, when not nil, goes to the front of the search history.
// A session that was cleared meanwhile is not revived, and what the guest chose meanwhile stands; Saved
// tells.
func (r *Room) Save(ctx context.Context, pipe redis.Pipeliner, s *Session, history *HistoryEntry) *redis.Cmd {
	v := lua.Visited{
		Session: r.keys.Session(s.ID), History: r.keys.SessionPart(s.ID, "history"), Cleared: r.cleared(s.ID),
		Lists:  []string{r.keys.SessionPart(s.ID, "wishlist"), r.keys.SessionPart(s.ID, "recent")},
		Create: !s.stored, Life: TTL, Changes: s.changed, Entry: history.json(), MaxEntries: maxHistory,
	}
	switch {
	case v.Create:
		v.Defaults = s.hash()
	case s.recalled: // what was read was a session that nobody could be asked about
		v.Defaults = map[string]string{"consentTelemetry": flag(s.Consent.Telemetry), "consentMarketing": flag(s.Consent.Marketing)}
	}
	if _, touched := s.changed["lastSeenAt"]; touched {
		r.noteSeen(ctx, pipe, s)
	}
	return lua.Visit(ctx, pipe, v)
}

// Saved is what became of a session that was saved.
type Saved struct {
	Gone     bool // it was cleared meanwhile, and nothing was written
	Lost     bool // Redis lost it meanwhile, and nothing was written
	Silent   bool // telemetry was refused meanwhile
	Locale   *Change
	Currency *Change
}

// Change of a preference by this visit: nobody else is told of the same one.
type Change struct{ From, To, Trigger string }

// Saved reads what the command of Save answered, once it has run.
func (r *Room) Saved(s *Session, cmd *redis.Cmd) (Saved, error) {
	noted, err := lua.ReadNoted(cmd)
	if err != nil {
		return Saved{}, fmt.Errorf("session: save: %w", err)
	}
	saved := Saved{Gone: noted.Gone, Lost: noted.Lost, Silent: noted.Telemetry == flag(false)}
	if noted.Locale != "" {
		saved.Locale = &Change{noted.Locale, string(s.Locale), string(s.LocaleSource)}
	}
	if noted.Currency != "" {
		saved.Currency = &Change{noted.Currency, string(s.Currency), currencyTrigger(s.CurrencySource)}
	}
	return saved, nil
}

// currencyTrigger says in the words of the event why a currency changed. X-Currency is what the guest picked in the
// client for this visit: not binding, but picked.
func currencyTrigger(source Source) string {
	if source == Header {
		return string(Explicit)
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

func flag(b bool) string {
	if b {
		return "1"
	}
	return "0"
}
