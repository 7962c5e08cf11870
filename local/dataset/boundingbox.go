package dataset

import (
	"math"

	"melmastoon.ghasi.io/bff-consumer/shared/geo"
)

const kmPerDegree = 111.19 // of latitude, slightly below the real value, so boxes are slightly too large

// boundingBox returns a box that encloses a circle. Near a pole the box covers all longitudes.
func boundingBox(center geo.Point, km float64) geo.Box {
	dLat := km/kmPerDegree + 1e-6
	south, north := center.Lat-dLat, center.Lat+dLat
	if south <= -90 || north >= 90 {
		return geo.Box{SwLat: max(south, -90), SwLng: -180, NeLat: min(north, 90), NeLng: 180}
	}
	// The longitude extent is largest on the side of the nearer pole, not at the centre.
	dLng := math.Asin(min(1, math.Sin(dLat*math.Pi/180)/math.Cos(center.Lat*math.Pi/180))) * 180 / math.Pi
	if dLng >= 90 {
		return geo.Box{SwLat: south, SwLng: -180, NeLat: north, NeLng: 180}
	}
	return geo.Box{SwLat: south, SwLng: wrapLongitude(center.Lng - dLng), NeLat: north, NeLng: wrapLongitude(center.Lng + dLng)}
}

func wrapLongitude(lng float64) float64 {
	switch {
	case lng < -180:
		return lng + 360
	case lng > 180:
		return lng - 360
	}
	return lng
}
