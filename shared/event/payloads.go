package event

import "time"

// Hashes in payloads are "sha256:" and 64 hex digits, made with the environment's pepper. Ids are the
// prefixed ULIDs of package id. Optional fields are left out when they are zero.

// Campaign is the utm triple a guest arrived with. Each value is a CampaignToken or empty.
type Campaign struct {
	Source   string `json:"source,omitzero"`
	Medium   string `json:"medium,omitzero"`
	Campaign string `json:"campaign,omitzero"`
}

// Dates of a stay, each 2006-01-02.
type Dates struct {
	CheckIn  string `json:"checkIn"`
	CheckOut string `json:"checkOut"`
}

// Occupancy of a stay. Ages are part of a handoff only: a search does not need them to be counted.
type Occupancy struct {
	Adults       int   `json:"adults"`
	Children     int   `json:"children"`
	Rooms        int   `json:"rooms"`
	ChildrenAges []int `json:"childrenAges,omitempty"`
}

// SessionStarted tells that a guest without a cookie was given one.
type SessionStarted struct {
	GuestSessionID      string    `json:"guestSessionId"`
	CreatedAt           time.Time `json:"createdAt"`
	LocalePreference    string    `json:"localePreference"`
	CurrencyPreference  string    `json:"currencyPreference"`
	FingerprintHash     string    `json:"fingerprintHash"`
	IPHash              string    `json:"ipHash"`
	CampaignAttribution *Campaign `json:"campaignAttribution,omitzero"`
	UserAgentClass      string    `json:"userAgentClass"` // such as browser-desktop; never the header itself
}

// EndReason is why a session ended.
type EndReason string

// Reasons why a session ended.
const (
	ExplicitClear EndReason = "explicit-clear"
	TTLExpired    EndReason = "ttl-expired"
	Rotated       EndReason = "rotated"
)

// SessionEnded tells that a session was cleared, forgotten or moved to a new id.
type SessionEnded struct {
	GuestSessionID  string    `json:"guestSessionId"`
	EndedAt         time.Time `json:"endedAt"`
	Reason          EndReason `json:"reason"`
	LastSeenAt      time.Time `json:"lastSeenAt"`
	LifetimeSeconds int64     `json:"lifetimeSeconds"`
}

// SearchExecuted tells that a search answered with results.
type SearchExecuted struct {
	GuestSessionID  string    `json:"guestSessionId"`
	SearchSessionID string    `json:"searchSessionId"`
	QueryHash       string    `json:"queryHash"`
	Kind            string    `json:"kind"` // list or map
	Geo             Geo       `json:"geo"`
	Dates           Dates     `json:"dates"`
	Occupancy       Occupancy `json:"occupancy"` // without ages
	FilterKeys      Filters   `json:"filterKeys"`
	SortKey         string    `json:"sortKey"`
	Page            *Page     `json:"page,omitzero"` // a map has none
	ResultCount     int       `json:"resultCount"`
	FromCache       bool      `json:"fromCache"`
	CompositionMs   int64     `json:"compositionMs"`
	Currency        string    `json:"currency"`
	Locale          string    `json:"locale"`
}

// Geo says where was searched, by the upstream's names for the place (see PlaceName), never by what the
// guest typed and never by coordinates, which may be where the guest stands.
type Geo struct {
	Mode    string `json:"mode"` // point, bounding-box, city or region
	City    string `json:"city,omitzero"`
	Region  string `json:"region,omitzero"`
	Country string `json:"country,omitzero"` // ISO 3166-1 alpha-2
}

// Page of a list.
type Page struct {
	Limit  int `json:"limit"`
	Offset int `json:"offset"`
}

// ClickRecorded tells that a guest followed something.
type ClickRecorded struct {
	GuestSessionID  string    `json:"guestSessionId"`
	Kind            string    `json:"kind"` // listing-card, map-pin, similar-property, wishlist-card or brand-peek
	TenantID        string    `json:"tenantId"`
	PropertyID      string    `json:"propertyId"`
	SearchSessionID string    `json:"searchSessionId,omitzero"`
	Position        int       `json:"position,omitzero"` // from 1
	Page            int       `json:"page,omitzero"`     // from 1
	SortKey         string    `json:"sortKey,omitzero"`
	OccurredAt      time.Time `json:"occurredAt"`
}

// HandoffInitiated tells that a guest was sent to a tenant with a signed token. It joins the anonymous
// visit with the booking that may follow, and is kept for audit.
type HandoffInitiated struct {
	HandoffID       string    `json:"handoffId"`
	GuestSessionID  string    `json:"guestSessionId"`
	TenantID        string    `json:"tenantId"`
	TenantSlug      string    `json:"tenantSlug"`
	PropertyID      string    `json:"propertyId"`
	Dates           Dates     `json:"dates"`
	Occupancy       Occupancy `json:"occupancy"`
	Currency        string    `json:"currency"`
	Locale          string    `json:"locale"`
	SourceCampaign  *Campaign `json:"sourceCampaign,omitzero"`
	MintedAt        time.Time `json:"mintedAt"`
	ExpiresAt       time.Time `json:"expiresAt"`
	HMACKeyID       string    `json:"hmacKeyId"`
	FingerprintHash string    `json:"fingerprintHash"`
	IPHash          string    `json:"ipHash"`
	OriginReferer   string    `json:"originReferer,omitzero"` // origin and path, no query
}

// LocaleChanged tells that a session's language was changed.
type LocaleChanged struct {
	GuestSessionID string    `json:"guestSessionId"`
	PreviousLocale string    `json:"previousLocale"`
	NewLocale      string    `json:"newLocale"`
	Trigger        string    `json:"trigger"` // user-explicit, accept-language or geo-ip
	OccurredAt     time.Time `json:"occurredAt"`
}

// CurrencyChanged tells that a session's currency was changed.
type CurrencyChanged struct {
	GuestSessionID   string    `json:"guestSessionId"`
	PreviousCurrency string    `json:"previousCurrency"`
	NewCurrency      string    `json:"newCurrency"`
	Trigger          string    `json:"trigger"` // user-explicit, tenant-default or geo-ip
	OccurredAt       time.Time `json:"occurredAt"`
}

// WishlistAdded tells that a property was put on a wishlist. The guest's note stays behind.
type WishlistAdded struct {
	WishlistID     string    `json:"wishlistId"`
	GuestSessionID string    `json:"guestSessionId"`
	TenantID       string    `json:"tenantId"`
	PropertyID     string    `json:"propertyId"`
	Source         string    `json:"source"` // detail, list, map or recently-viewed
	AddedAt        time.Time `json:"addedAt"`
	WishlistSize   int       `json:"wishlistSize"` // after the addition
}

// WishlistRemoved tells that a property was taken off a wishlist.
type WishlistRemoved struct {
	WishlistID     string    `json:"wishlistId"`
	GuestSessionID string    `json:"guestSessionId"`
	TenantID       string    `json:"tenantId"`
	PropertyID     string    `json:"propertyId"`
	RemovedAt      time.Time `json:"removedAt"`
	WishlistSize   int       `json:"wishlistSize"` // after the removal
}

// BotSuspected tells that requests looked automated. It is kept for audit.
type BotSuspected struct {
	GuestSessionID  string      `json:"guestSessionId,omitzero"` // absent before a session exists
	Score           float64     `json:"score"`                   // 0 human … 1 bot
	Verdict         string      `json:"verdict"`                 // suspect or bot
	Signals         []BotSignal `json:"signals"`
	IPHash          string      `json:"ipHash"`
	UserAgentHash   string      `json:"userAgentHash"`
	FingerprintHash string      `json:"fingerprintHash"`
	EvaluatedAt     time.Time   `json:"evaluatedAt"`
	ActionTaken     string      `json:"actionTaken"` // none, challenge or hard-block
}

// BotSignal is one reason for a verdict.
type BotSignal struct {
	Kind   string  `json:"kind"`   // ua-pattern, cadence, fingerprint-collision, recaptcha or header-anomaly
	Weight float64 `json:"weight"` // what it adds to the score; recaptcha may take away
	Detail string  `json:"detail,omitzero"`
}

// PageViewed is one row of the page-view ledger.
type PageViewed struct {
	ID              string    `json:"id"` // mpv_<ulid>
	GuestSessionID  string    `json:"guestSessionId"`
	SearchSessionID string    `json:"searchSessionId,omitzero"`
	Path            string    `json:"path"` // without query or fragment
	TenantID        string    `json:"tenantId,omitzero"`
	PropertyID      string    `json:"propertyId,omitzero"`
	ViewedAt        time.Time `json:"viewedAt"`
	Referer         string    `json:"referer,omitzero"` // origin and path, no query
	UserAgentHash   string    `json:"userAgentHash"`
	FingerprintHash string    `json:"fingerprintHash"`
}

// FunnelStepRecorded is one row of the conversion ledger.
type FunnelStepRecorded struct {
	ID              string         `json:"id"` // cfe_<ulid>
	GuestSessionID  string         `json:"guestSessionId"`
	Step            string         `json:"step"`
	OccurredAt      time.Time      `json:"occurredAt"`
	TenantID        string         `json:"tenantId,omitzero"`
	PropertyID      string         `json:"propertyId,omitzero"`
	SearchSessionID string         `json:"searchSessionId,omitzero"`
	Metadata        map[string]any `json:"metadata,omitzero"` // small numbers, booleans and lower-case words
}

func (SessionStarted) Subject() string     { return subjectPrefix + "session.started.v1" }
func (SessionEnded) Subject() string       { return subjectPrefix + "session.ended.v1" }
func (SearchExecuted) Subject() string     { return subjectPrefix + "search.executed.v1" }
func (ClickRecorded) Subject() string      { return subjectPrefix + "click.recorded.v1" }
func (HandoffInitiated) Subject() string   { return subjectPrefix + "handoff.initiated.v1" }
func (LocaleChanged) Subject() string      { return subjectPrefix + "locale.changed.v1" }
func (CurrencyChanged) Subject() string    { return subjectPrefix + "currency.changed.v1" }
func (WishlistAdded) Subject() string      { return subjectPrefix + "wishlist.added.v1" }
func (WishlistRemoved) Subject() string    { return subjectPrefix + "wishlist.removed.v1" }
func (BotSuspected) Subject() string       { return subjectPrefix + "bot_suspected.v1" }
func (PageViewed) Subject() string         { return subjectPrefix + "page.viewed.v1" }
func (FunnelStepRecorded) Subject() string { return subjectPrefix + "funnel.step_recorded.v1" }
