// Package session owns the anonymous guest: the cookie, the Redis hash with preferences, campaign
// and running searches, the lists of viewed properties and past searches, and the guest's consent
// in Postgres. It never composes a response, and it never fails a request because Redis is away:
// the session is degraded then.
package session

import (
	"time"

	"melmastoon.ghasi.io/bff-consumer/shared/locale"
	"melmastoon.ghasi.io/bff-consumer/shared/money"
)

// TTL is how long a session lives without a request. It applies to the cookie and to all Redis keys
// of the session.
const TTL = 30 * 24 * time.Hour

// Source says where a preference came from. Only SourceExplicit binds: no later request overrides
// it.
type Source string

// Sources of a preference.
const (
	SourceExplicit Source = "user-explicit"   // POST /session/locale or /session/currency
	SourceHeader   Source = "accept-language" // Accept-Language or X-Currency of the request
	SourceGeoIP    Source = "geo-ip"          // the country header of the load balancer
	SourceDefault  Source = "default"
)

// Session is docs/spec/data-model.md#guest-session without its lists, which are Redis lists of
// their own. It belongs to one request and is not safe for concurrent use.
type Session struct {
	ID             string // gms_<ulid>
	CreatedAt      time.Time
	LastSeenAt     time.Time // of this request
	Locale         locale.Tag
	LocaleSource   Source
	Currency       money.Currency
	CurrencySource Source
	Fingerprint    string // sha256:<hex>; see Client
	Campaign       *Campaign
	Consent        Consent

	New      bool // this request minted the id: the client does not have the cookie yet
	Degraded bool // Redis did not answer: only id and headers are known, nothing is saved

	exists             bool // the hash exists in Redis
	needsConsent       bool // Redis has no consent of this session: RestoreConsent asks Postgres
	consentUnavailable bool // Postgres did not answer RestoreConsent: the guest may have opted out
	consentRestored    bool // Postgres answered RestoreConsent
	bindingHash        string
	wishlistVersion    string // version of the wishlist's copy in Redis; empty: there is no copy
	searches           []activeSearch
	changedFields      map[string]string // fields of the hash that this request changed
}

// Consent is what the guest allows.
type Consent struct {
	Telemetry bool // starts false under DNT: 1 or Sec-GPC: 1, else true
	Marketing bool // starts false
}

// AllowsEvents reports whether the outbox may be offered events of this session, as far as this
// process knows. The record in Postgres decides when the events are written (see package outbox).
func (s *Session) AllowsEvents() bool { return s.Consent.Telemetry }

// ConsentKnown reports whether this process knows the guest's consent. If not, only Postgres can
// say whether an event may be written, so no event and no viewed property of the guest may wait in
// Redis.
func (s *Session) ConsentKnown() bool { return !s.Degraded && !s.consentUnavailable && !s.needsConsent }

// setField marks a field of the hash as changed by this request.
func (s *Session) setField(field, value string) {
	if s.changedFields == nil {
		s.changedFields = map[string]string{}
	}
	s.changedFields[field] = value
}
