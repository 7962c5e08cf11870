package view

import (
	"time"

	"melmastoon.ghasi.io/bff-consumer/shared/geo"
	"melmastoon.ghasi.io/bff-consumer/shared/upstream"
)

const maxHighlights = 5

// neutralColor stands in for a brand's colour: a grey that reads on white and on black.
const neutralColor = "#6b7280"

// Card makes the card of one hit, without its rate. brand is nil while theme-config has no answer;
// region is the cloud region this service runs in.
func Card(hit *upstream.Hit, brand *upstream.Brand, region string) ListingCard {
	return ListingCard{
		PropertyID: hit.PropertyID, TenantID: hit.TenantID, TenantSlug: hit.TenantSlug,
		Name: hit.Name, City: hit.City, Country: hit.Country,
		Geo: hit.Geo, Thumbnail: hit.Thumbnail, StarRating: hit.StarRating, GuestRating: hit.GuestRating,
		AmenityHighlights: hit.AmenityHighlights[:min(len(hit.AmenityHighlights), maxHighlights)],
		BrandPeek:         peek(hit.Name, hit.Thumbnail.URL, brand), Badges: badges(hit, region), DistanceKm: hit.DistanceKm,
	}
}

// Pin makes the pin of one hit, without a rate.
func Pin(hit *upstream.Hit, brand *upstream.Brand) MapPin {
	pin := MapPin{PropertyID: hit.PropertyID, Geo: hit.Geo, BrandColor: neutralColor}
	if brand != nil {
		pin.BrandColor = brand.PrimaryColor
	}
	return pin
}

// Rate makes the snapshot of one quote, and says until when it is fresh: what pricing says, at most 60 s
// after it was captured, and at most 60 s from now whatever pricing's clock says.
func Rate(q *upstream.Quote, now time.Time) (RateSnapshot, time.Time) {
	until := earliest(q.TTLExpiresAt, q.CapturedAt.Add(maxRateAge), now.Add(maxRateAge))
	return RateSnapshot{
		CheapestNightlyMinor: q.CheapestNightlyMinor, TotalForStayMinor: q.TotalForStayMinor,
		Currency: q.Currency, CurrencyDisplayPolicy: q.CurrencyDisplayPolicy, FxSnapshotID: q.FXSnapshotID,
		CapturedAt: Timestamp(q.CapturedAt), TTLExpiresAt: Timestamp(until),
	}, until
}

func earliest(first time.Time, others ...time.Time) time.Time {
	for _, t := range others {
		if t.Before(first) {
			first = t
		}
	}
	return first
}

// Timestamp writes a time as every body does: UTC with milliseconds.
func Timestamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }

// peek is the brand, or a stand-in of the hotel's own name and picture.
func peek(name upstream.Localized, picture string, brand *upstream.Brand) BrandPeek {
	if brand == nil {
		return BrandPeek{PrimaryColor: neutralColor, LogoURL: picture, BrandName: name, Neutral: true}
	}
	return BrandPeek{PrimaryColor: brand.PrimaryColor, LogoURL: brand.LogoURL, BrandName: brand.BrandName}
}

// passedOn are the badges search-aggregation may give; crossRegionDelivery is ours to decide.
var passedOn = map[string]bool{"shariaCompliant": true, "newProperty": true}

func badges(hit *upstream.Hit, region string) []string {
	var list []string
	if far(hit.ServingRegion, region) {
		list = append(list, "crossRegionDelivery")
	}
	for _, b := range hit.Badges {
		if passedOn[b] {
			list = append(list, b)
		}
	}
	return list
}

// farKm is the distance between two cloud regions beyond which a booking is called international:
// neighbours such as Mumbai and Dammam stay below it, Mumbai and Europe do not.
const farKm = 3_500

// far says whether a property is served from a region far from ours. An unknown region is not far: the
// badge is a hint, and a wrong one frightens guests away.
func far(theirs, ours string) bool {
	a, known := regions[theirs]
	b, alsoKnown := regions[ours]
	return known && alsoKnown && geo.DistanceKm(a, b) > farKm
}

// regions holds where the provider's regions are, to a tenth of a degree (public locations page).
var regions = map[string]geo.Point{
	"africa-south1":        {Lat: -26.2, Lng: 28.0},
	"asia-east1":           {Lat: 24.1, Lng: 120.5},
	"asia-northeast1":      {Lat: 35.7, Lng: 139.7},
	"asia-south1":          {Lat: 19.1, Lng: 72.9},
	"asia-south2":          {Lat: 28.6, Lng: 77.2},
	"asia-southeast1":      {Lat: 1.4, Lng: 103.7},
	"asia-southeast2":      {Lat: -6.2, Lng: 106.8},
	"australia-southeast1": {Lat: -33.9, Lng: 151.2},
	"europe-central2":      {Lat: 52.2, Lng: 21.0},
	"europe-southwest1":    {Lat: 40.4, Lng: -3.7},
	"europe-west1":         {Lat: 50.4, Lng: 3.8},
	"europe-west3":         {Lat: 50.1, Lng: 8.7},
	"me-central1":          {Lat: 25.3, Lng: 51.5},
	"me-central2":          {Lat: 26.4, Lng: 50.1},
	"me-west1":             {Lat: 32.1, Lng: 34.8},
	"us-central1":          {Lat: 41.3, Lng: -95.9},
	"us-east4":             {Lat: 39.0, Lng: -77.5},
	"us-west1":             {Lat: 45.6, Lng: -121.2},
}
