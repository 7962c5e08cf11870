package view

import "melmastoon.ghasi.io/bff-consumer/shared/geo"

// crossRegionKm is the distance between cloud regions above which a property gets the badge
// crossRegionDelivery: neighbours such as Mumbai and Dammam are below, Mumbai and Europe above.
const crossRegionKm = 3_500

// isCrossRegion reports whether the serving region of a property is far from the region of this
// service. An unknown region is not far, because a wrong badge deters guests.
func isCrossRegion(servingRegion, ownRegion string) bool {
	a, knownServing := regionLocations[servingRegion]
	b, knownOwn := regionLocations[ownRegion]
	return knownServing && knownOwn && geo.DistanceKm(a, b) > crossRegionKm
}

// regionLocations has the locations of the provider's regions, to 0.1 degree (public locations
// page).
var regionLocations = map[string]geo.Point{
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
