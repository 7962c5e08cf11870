// Package view owns the shapes clients see (DOMAIN_MODEL §4) and how they are put together from what
// the upstreams answered. It never calls anybody and never computes money.
package view

import (
	"time"

	"melmastoon.ghasi.io/bff-consumer/shared/geo"
	"melmastoon.ghasi.io/bff-consumer/shared/money"
	"melmastoon.ghasi.io/bff-consumer/shared/upstream"
)

// ListingCard is one hotel of a list. RateSnapshot is its last member: Page splices it.
type ListingCard struct {
	PropertyID        string             `json:"propertyId"`
	TenantID          string             `json:"tenantId"`
	TenantSlug        string             `json:"tenantSlug"`
	Name              upstream.Localized `json:"name"`
	City              string             `json:"city"`
	Country           string             `json:"country"`
	Geo               geo.Point          `json:"geo"`
	Thumbnail         upstream.Image     `json:"thumbnail"`
	StarRating        float64            `json:"starRating,omitzero"`
	GuestRating       *upstream.Rating   `json:"guestRating,omitzero"`
	AmenityHighlights []string           `json:"amenityHighlights"` // at most 5
	BrandPeek         BrandPeek          `json:"brandPeek"`
	Badges            []string           `json:"badges"`              // crossRegionDelivery | shariaCompliant | newProperty
	DistanceKm        *float64           `json:"distanceKm,omitzero"` // for a point query
}

// BrandPeek is the glimpse of a tenant's brand. Neutral marks the stand-in shown while theme-config has
// no answer.
type BrandPeek struct {
	PrimaryColor string             `json:"primaryColor"`
	LogoURL      string             `json:"logoUrl"`
	BrandName    upstream.Localized `json:"brandName"`
	Neutral      bool               `json:"neutral,omitzero"`
}

// RateSnapshot is the cheapest rate for the stay asked for, in minor units as decimal strings, passed
// through from pricing. IsStale says that its 60 seconds are over.
type RateSnapshot struct {
	CheapestNightlyMinor  money.Minor `json:"cheapestNightlyMinor"`
	TotalForStayMinor     money.Minor `json:"totalForStayMinor"`
	Currency              string      `json:"currency"`
	CurrencyDisplayPolicy string      `json:"currencyDisplayPolicy"` // tenant | user-preferred | fallback
	FxSnapshotID          string      `json:"fxSnapshotId,omitzero"`
	CapturedAt            string      `json:"capturedAt"`
	TTLExpiresAt          string      `json:"ttlExpiresAt"`
	IsStale               bool        `json:"isStale"`
}

// MapPin is one hotel of a map. The rate fields are its last members and only the spotlighted pin has
// them.
type MapPin struct {
	PropertyID string    `json:"propertyId"`
	Geo        geo.Point `json:"geo"`
	BrandColor string    `json:"brandColor"`
}

// Degraded names a part that is missing from an answer, and why.
type Degraded struct {
	Part   string `json:"part"`   // pricing | theme | search | property
	Reason string `json:"reason"` // timeout | unavailable | breaker-open | bad-response | budget
}

const maxRateAge = 60 * time.Second // a rate is never shown as fresh beyond it, whatever pricing says
