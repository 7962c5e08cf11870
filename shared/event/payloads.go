package event

import "time"

// Hashes in payloads are "sha256:" and 64 hex digits, computed with the environment's pepper. Ids
// are prefixed ULIDs of package id. Zero optional fields are left out of the JSON.

// Campaign holds the utm values of a guest's arrival. Each value satisfies IsCampaignToken or is
// empty.
type Campaign struct {
	Source   string `json:"source,omitzero"`
	Medium   string `json:"medium,omitzero"`
	Campaign string `json:"campaign,omitzero"`
}

// Dates of a stay, in the form 2006-01-02.
type Dates struct {
	CheckIn  string `json:"checkIn"`
	CheckOut string `json:"checkOut"`
}

// Occupancy of a stay. Only a handoff has the ages of children.
type Occupancy struct {
	Adults       int   `json:"adults"`
	Children     int   `json:"children"`
	Rooms        int   `json:"rooms"`
	ChildrenAges []int `json:"childrenAges,omitempty"`
}

// SessionStarted reports a new session: a guest without a valid cookie received one.
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

// EndReason is the reason for the end of a session.
type EndReason string

// Values of EndReason.
const (
	ExplicitClear EndReason = "explicit-clear"
	TTLExpired    EndReason = "ttl-expired"
	Rotated       EndReason = "rotated"
)

// SessionEnded reports that a session was cleared by the guest, expired, or moved to a new id.
type SessionEnded struct {
	GuestSessionID  string    `json:"guestSessionId"`
	EndedAt         time.Time `json:"endedAt"`
	Reason          EndReason `json:"reason"`
	LastSeenAt      time.Time `json:"lastSeenAt"`
	LifetimeSeconds int64     `json:"lifetimeSeconds"`
}

// SearchExecuted reports a search that returned results.
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

// Geo is the place of a search, in the upstream's names (see SanitizePlaceName). It never holds the
// guest's input or coordinates, which may be the guest's location.
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

// ClickRecorded reports a click of a guest on a listing or a link to a hotel.
type ClickRecorded struct {
	GuestSessionID string `json:"guestSessionId"`
	// listing-card, map-pin, similar-property, wishlist-card or brand-peek
	Kind            string    `json:"kind"`
	TenantID        string    `json:"tenantId"`
	PropertyID      string    `json:"propertyId"`
	SearchSessionID string    `json:"searchSessionId,omitzero"`
	Position        int       `json:"position,omitzero"` // from 1
	Page            int       `json:"page,omitzero"`     // from 1
	SortKey         string    `json:"sortKey,omitzero"`
	OccurredAt      time.Time `json:"occurredAt"`
}

// HandoffInitiated reports that a guest received a signed token for a tenant's booking flow. It
// joins the anonymous session with a later booking. Its retention class is audit.
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

// LocaleChanged reports a change of a session's language.
type LocaleChanged struct {
	GuestSessionID string    `json:"guestSessionId"`
	PreviousLocale string    `json:"previousLocale"`
	NewLocale      string    `json:"newLocale"`
	Trigger        string    `json:"trigger"` // user-explicit, accept-language or geo-ip
	OccurredAt     time.Time `json:"occurredAt"`
}

// CurrencyChanged reports a change of a session's currency.
type CurrencyChanged struct {
	GuestSessionID   string    `json:"guestSessionId"`
	PreviousCurrency string    `json:"previousCurrency"`
	NewCurrency      string    `json:"newCurrency"`
	Trigger          string    `json:"trigger"` // user-explicit, tenant-default or geo-ip
	OccurredAt       time.Time `json:"occurredAt"`
}

// WishlistAdded reports a property added to a wishlist. The event leaves out the guest's note.
type WishlistAdded struct {
	WishlistID     string    `json:"wishlistId"`
	GuestSessionID string    `json:"guestSessionId"`
	TenantID       string    `json:"tenantId"`
	PropertyID     string    `json:"propertyId"`
	Source         string    `json:"source"` // detail, list, map or recently-viewed
	AddedAt        time.Time `json:"addedAt"`
	WishlistSize   int       `json:"wishlistSize"` // after the addition
}

// WishlistRemoved reports the removal of a property from a wishlist.
type WishlistRemoved struct {
	WishlistID     string    `json:"wishlistId"`
	GuestSessionID string    `json:"guestSessionId"`
	TenantID       string    `json:"tenantId"`
	PropertyID     string    `json:"propertyId"`
	RemovedAt      time.Time `json:"removedAt"`
	WishlistSize   int       `json:"wishlistSize"` // after the removal
}

// BotSuspected reports requests that looked automated. Its retention class is audit.
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

// BotSignal is one reason for the verdict of BotSuspected.
type BotSignal struct {
	Kind   string  `json:"kind"`   // ua-pattern, cadence, fingerprint-collision, recaptcha or header-anomaly
	Weight float64 `json:"weight"` // added to the score; negative only for recaptcha
	Detail string  `json:"detail,omitzero"`
}

// PageViewed reports a view of a page.
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

// FunnelStepRecorded reports a step of the conversion funnel.
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
