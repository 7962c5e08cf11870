// Package geo owns values for places on the earth: points, boxes, distances and H3 cells. It never
// calls a service and never rounds a position; it is pure Go, because functions are built without a C compiler.
package geo

import "math"

// earthRadiusKm is the mean radius; the earth is a sphere throughout this package.
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

// Written so that NaN fails, too: every comparison with it is false.
func validLat(deg float64) bool { return deg >= -90 && deg <= 90 }
func validLng(deg float64) bool { return deg >= -180 && deg <= 180 }

// DistanceKm is the great-circle distance in kilometres (haversine). It is within 0.6 % of the distance on the
// ellipsoid.
func DistanceKm(a, b Point) float64 {
	sinLat := math.Sin(radians(b.Lat-a.Lat) / 2)
	sinLng := math.Sin(radians(b.Lng-a.Lng) / 2)
	h := sinLat*sinLat + math.Cos(radians(a.Lat))*math.Cos(radians(b.Lat))*sinLng*sinLng
	return 2 * earthRadiusKm * math.Asin(math.Sqrt(min(h, 1))) // rounding may exceed 1 at antipodes
}

func radians(deg float64) float64 { return deg * (math.Pi / 180) }
