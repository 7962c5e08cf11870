// Package geo owns points, boxes, distances and H3 cells on the earth. It does no I/O and never
// rounds a position. It is pure Go, because functions are built without a C compiler. All functions
// are pure and safe for concurrent use.
package geo

import "math"

// earthRadiusKm is the mean radius; this package models the earth as a sphere.
const earthRadiusKm = 6371.0088

// Point is a position in degrees, WGS 84.
type Point struct {
	Lat float64 `json:"lat"` // -90 … 90
	Lng float64 `json:"lng"` // -180 … 180
}

// Valid reports whether both coordinates are finite and in range.
func (p Point) Valid() bool {
	return validLat(p.Lat) && validLng(p.Lng)
}

// Written to reject NaN, too: every comparison with NaN is false.
func validLat(deg float64) bool { return deg >= -90 && deg <= 90 }
func validLng(deg float64) bool { return deg >= -180 && deg <= 180 }

// DistanceKm returns the great-circle distance in kilometres (haversine), within 0.6 % of the
// distance on the ellipsoid; NaN if a coordinate is NaN or infinite. It does not check that the
// points are valid.
func DistanceKm(a, b Point) float64 {
	sinLat := math.Sin(radians(b.Lat-a.Lat) / 2)
	sinLng := math.Sin(radians(b.Lng-a.Lng) / 2)
	h := sinLat*sinLat + math.Cos(radians(a.Lat))*math.Cos(radians(b.Lat))*sinLng*sinLng
	return 2 * earthRadiusKm * math.Asin(math.Sqrt(min(h, 1))) // rounding errors exceed 1 at antipodes
}

func radians(deg float64) float64 { return deg * (math.Pi / 180) }
