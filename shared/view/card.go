// Package view owns the shapes clients see (docs/spec/routes.md#view-models) and how they are put together from what
// the upstreams answered. It never calls anybody and never computes money.
package view

import (
	"melmastoon.ghasi.io/bff-consumer/shared/geo"
	"melmastoon.ghasi.io/bff-consumer/shared/upstream"
)

// ListingCard is one hotel of a list. RateSnapshot is its last member: Page splices it. Badges are crossRegionDelivery,
// shariaCompliant and newProperty.
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
	Badges            []string           `json:"badges"`
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

const maxHighlights = 5

// neutralColor stands in for a brand's colour: a grey that reads on white and on black.
const neutralColor = "#6b7280"

// NewCard makes the card of one hit, without its rate. brand is nil while theme-config has no answer;
// region is the cloud region this service runs in.
func NewCard(hit *upstream.Hit, brand *upstream.Brand, region string) ListingCard {
	return ListingCard{
		PropertyID: hit.PropertyID, TenantID: hit.TenantID, TenantSlug: hit.TenantSlug,
		Name: hit.Name, City: hit.City, Country: hit.Country,
		Geo: hit.Geo, Thumbnail: hit.Thumbnail, StarRating: hit.StarRating, GuestRating: hit.GuestRating,
		AmenityHighlights: hit.AmenityHighlights[:min(len(hit.AmenityHighlights), maxHighlights)],
		BrandPeek:         newBrandPeek(hit.Name, hit.Thumbnail.URL, brand), Badges: badges(hit, region), DistanceKm: hit.DistanceKm,
	}
}

// NewPin makes the pin of one hit, without a rate.
func NewPin(hit *upstream.Hit, brand *upstream.Brand) MapPin {
	pin := MapPin{PropertyID: hit.PropertyID, Geo: hit.Geo, BrandColor: neutralColor}
	if brand != nil {
		pin.BrandColor = brand.PrimaryColor
	}
	return pin
}

// newBrandPeek is the brand, or a stand-in of the hotel's own name and picture.
func newBrandPeek(name upstream.Localized, picture string, brand *upstream.Brand) BrandPeek {
	if brand == nil {
		return BrandPeek{PrimaryColor: neutralColor, LogoURL: picture, BrandName: name, Neutral: true}
	}
	return BrandPeek{PrimaryColor: brand.PrimaryColor, LogoURL: brand.LogoURL, BrandName: brand.BrandName}
}

// upstreamBadges are the badges search-aggregation may give; crossRegionDelivery is ours to decide.
var upstreamBadges = map[string]bool{"shariaCompliant": true, "newProperty": true}

func badges(hit *upstream.Hit, region string) []string {
	var list []string
	if isCrossRegion(hit.ServingRegion, region) {
		list = append(list, "crossRegionDelivery")
	}
	for _, b := range hit.Badges {
		if upstreamBadges[b] {
			list = append(list, b)
		}
	}
	return list
}
