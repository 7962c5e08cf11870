package geo

import (
	"iter"
	"math"
)

// region is a part of the sphere with a single arc on each circle of latitude, and the same middle
// longitude for all arcs. All values are in radians.
type region struct {
	south, north float64
	middle       float64                   // a longitude
	halfWidth    func(lat float64) float64 // half the width of the arc; π: the full circle
}

// circle returns the region within a radius of a point.
func circle(of Point, radius float64) region {
	lat, lng := radians(of.Lat), radians(of.Lng)
	sinLat, cosLat := math.Sincos(lat)
	cosRadius := math.Cos(math.Min(radius, math.Pi))
	return region{
		south:  math.Max(lat-radius, -math.Pi/2),
		north:  math.Min(lat+radius, math.Pi/2),
		middle: lng,
		halfWidth: func(lat float64) float64 {
			sin, cos := math.Sincos(lat)
			return clampedAcos((cosRadius - sinLat*sin) / (cosLat * cos))
		},
	}
}

// clampedAcos extends acos: π below -1, 0 above 1, and π for NaN, the result of 0/0 at a pole
// within the circle.
func clampedAcos(cos float64) float64 {
	if cos > -1 {
		return math.Acos(math.Min(cos, 1))
	}
	return math.Pi
}

// rectangle returns the region within a distance of a box, and a little more at the corners.
func rectangle(b Box, by float64) region {
	width := radians(b.widthDeg())
	sinBy := math.Sin(math.Min(by, math.Pi/2))
	return region{
		south:  math.Max(radians(b.SwLat)-by, -math.Pi/2),
		north:  math.Min(radians(b.NeLat)+by, math.Pi/2),
		middle: radians(b.SwLng) + width/2,
		halfWidth: func(lat float64) float64 {
			sin := sinBy / math.Cos(lat) // sine of the longitude difference at distance by from a meridian
			if !(sin < 1) {
				return math.Pi
			}
			return math.Min(width/2+math.Asin(sin), math.Pi)
		},
	}
}

// contains reports whether the direction v, a unit vector, is in the region.
func (r region) contains(v vector) bool {
	lat := math.Asin(math.Max(-1, math.Min(v[2], 1)))
	away := math.Remainder(math.Atan2(v[1], v[0])-r.middle, 2*math.Pi)
	return lat >= r.south && lat <= r.north && math.Abs(away) <= r.halfWidth(lat)
}

// probes yields directions in the region on circles of latitude, with at most step radians between
// circles and between directions on a circle. The outermost directions are on the edges.
func (r region) probes(step float64) iter.Seq[vector] {
	return func(yield func(vector) bool) {
		rows := math.Ceil((r.north - r.south) / step)
		for row := 0.0; row <= rows; row++ {
			lat := r.south + (r.north-r.south)*row/math.Max(rows, 1)
			half := r.halfWidth(lat)
			columns := math.Ceil(2 * half * math.Cos(lat) / step)
			for column := 0.0; column <= columns; column++ {
				if !yield(direction(lat, r.middle-half+2*half*column/math.Max(columns, 1))) {
					return
				}
			}
		}
	}
}
