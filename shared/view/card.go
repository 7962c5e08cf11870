// Package view owns the view models of the routes (docs/spec/routes.md#view-models) and builds view
// models from upstream responses. It does no I/O, takes no lock and reads no clock, so every
// function costs only CPU and memory, and it never computes amounts of money. The JSON encoder
// fails for a NaN, an infinity and invalid UTF-8.
package view

import (
	"melmastoon.ghasi.io/bff-consumer/shared/geo"
	"melmastoon.ghasi.io/bff-consumer/shared/upstream"
)

// ListingCard is a hotel in a list. Page appends the member rateSnapshot. Badges are
// crossRegionDelivery, shariaCompliant and newProperty.
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
	DistanceKm        *float64           `json:"distanceKm,omitzero"` // only for a point query
}

// BrandPeek is the short form of a tenant's brand. Neutral marks the placeholder for a missing
// brand.
type BrandPeek struct {
	PrimaryColor string             `json:"primaryColor"`
	LogoURL      string             `json:"logoUrl"`
	BrandName    upstream.Localized `json:"brandName"`
	Neutral      bool               `json:"neutral,omitzero"`
}

// MapPin is a hotel on a map. Page appends the rate members, only to the spotlighted pin.
type MapPin struct {
	PropertyID string    `json:"propertyId"`
	Geo        geo.Point `json:"geo"`
	BrandColor string    `json:"brandColor"`
}

// Degraded names a missing part of a response with the reason.
type Degraded struct {
	Part   string `json:"part"`   // pricing | theme | search | property
	Reason string `json:"reason"` // timeout | unavailable | breaker-open | bad-response | budget
}

const maxHighlights = 5

// neutralColor replaces the colour of a missing brand: a grey legible on white and on black.
const neutralColor = "#6b7280"

// NewCard returns the card of a hit, without a rate, with at most 5 amenities. A nil brand gives
// the neutral placeholder. region is the cloud region of this service; with an unknown region no
// card gets the badge crossRegionDelivery. The card shares lists and maps with hit and brand.
// NewCard never fails; hit must not be nil. Pure.
func NewCard(hit *upstream.Hit, brand *upstream.Brand, region string) ListingCard {
	return ListingCard{
		PropertyID: hit.PropertyID, TenantID: hit.TenantID, TenantSlug: hit.TenantSlug,
		Name: hit.Name, City: hit.City, Country: hit.Country,
		Geo: hit.Geo, Thumbnail: hit.Thumbnail, StarRating: hit.StarRating, GuestRating: hit.GuestRating,
		AmenityHighlights: hit.AmenityHighlights[:min(len(hit.AmenityHighlights), maxHighlights)],
		BrandPeek:         newBrandPeek(hit.Name, hit.Thumbnail.URL, brand), Badges: badges(hit, region), DistanceKm: hit.DistanceKm,
	}
}

// NewPin returns the pin of a hit, without a rate. A nil brand gives the neutral colour. NewPin
// never fails; hit must not be nil. Pure.
func NewPin(hit *upstream.Hit, brand *upstream.Brand) MapPin {
	pin := MapPin{PropertyID: hit.PropertyID, Geo: hit.Geo, BrandColor: neutralColor}
	if brand != nil {
		pin.BrandColor = brand.PrimaryColor
	}
	return pin
}

// newBrandPeek returns the brand, or a placeholder with the name and picture of the hotel.
func newBrandPeek(name upstream.Localized, picture string, brand *upstream.Brand) BrandPeek {
	if brand == nil {
		return BrandPeek{PrimaryColor: neutralColor, LogoURL: picture, BrandName: name, Neutral: true}
	}
	return BrandPeek{PrimaryColor: brand.PrimaryColor, LogoURL: brand.LogoURL, BrandName: brand.BrandName}
}

// upstreamBadges are the badges from search-aggregation; this service itself decides about
// crossRegionDelivery.
var upstreamBadges = map[string]bool{"shariaCompliant": true, "newProperty": true}

// badges returns the badges of a hit for a service in region.
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
