// Package session owns the anonymous guest: the cookie that names the session, the Redis hash that
// remembers it, preferences, campaign, what was searched and viewed, and in Postgres what the guest
// decided about telemetry. It never decides what a route answers, and it never fails a request because
// Redis is away.
package session

import (
	"time"

	"melmastoon.ghasi.io/bff-consumer/shared/locale"
	"melmastoon.ghasi.io/bff-consumer/shared/money"
)

// TTL is how long a session lives without interaction: cookie and Redis alike.
const TTL = 30 * 24 * time.Hour

// Source says where a preference came from. Only Explicit binds: it is never overridden.
type Source string

// Sources of a preference.
const (
	SourceExplicit Source = "user-explicit"   // POST /session/locale or /session/currency
	SourceHeader   Source = "accept-language" // Accept-Language or X-Currency of the request
	SourceGeoIP    Source = "geo-ip"          // the country header of the load balancer
	SourceDefault  Source = "default"
)

// Session is docs/spec/data-model.md#guest-session without its lists, which are Redis lists of their own.
type Session struct {
	ID             string // gms_<ulid>
	CreatedAt      time.Time
	LastSeenAt     time.Time
	Locale         locale.Tag
	LocaleSource   Source
	Currency       money.Currency
	CurrencySource Source
	Fingerprint    string // sha256:<hex>, see Visit
	Campaign       *Campaign
	Consent        Consent

	New      bool // minted by this request: the cookie is not known to the client yet
	Degraded bool // Redis could not be asked: nothing is known beyond the id, and nothing is saved

	exists             bool // the hash exists in Redis
	needsConsent       bool // a genuine cookie without a hash: what the guest decided has to be asked of Postgres
	consentUnavailable bool // it could not be asked: the guest may have refused
	consentRestored    bool // it was asked
	bindingHash        string
	wishlistVersion    string // version of the wishlist's copy in Redis; empty: there is no copy
	searches           []activeSearch
	changedFields      map[string]string // fields of the hash this request changed
}

// Consent is what the guest allows.
type Consent struct {
	Telemetry bool // starts false under DNT: 1 or Sec-GPC: 1, else true
	Marketing bool // starts false
}

// AllowsEvents says whether events of this session may be offered to the outbox, as far as is known here: what a guest said in
// so many words is in Postgres, and has the last word when they are written (see outbox).
func (s *Session) AllowsEvents() bool { return s.Consent.Telemetry }

// ConsentKnown says whether it is known here what the guest decided. Else nobody but Postgres can say whether an event may be
// written, and nothing of the guest may wait elsewhere for its answer.
func (s *Session) ConsentKnown() bool { return !s.Degraded && !s.consentUnavailable && !s.needsConsent }

func (s *Session) setField(field, value string) {
	if s.changedFields == nil {
		s.changedFields = map[string]string{}
	}
	s.changedFields[field] = value
}
