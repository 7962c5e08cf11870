package geo

// Box is a rectangle of latitudes and longitudes in degrees, edges included. A box with SwLng >
// NeLng crosses the antimeridian: {-20, 170, -10, -170} is 20° wide. All methods are pure.
type Box struct {
	SwLat float64 `json:"swLat"`
	SwLng float64 `json:"swLng"`
	NeLat float64 `json:"neLat"`
	NeLng float64 `json:"neLng"`
}

// Valid reports whether all four sides are finite and in range, and the box has an area: SwLat is
// below NeLat, and the longitudes differ (180° and -180° differ only as SwLng -180, NeLng 180, the
// full circle).
func (b Box) Valid() bool {
	return validLat(b.SwLat) && validLat(b.NeLat) && validLng(b.SwLng) && validLng(b.NeLng) &&
		b.SwLat < b.NeLat && b.widthDeg() > 0
}

// AreaDeg2 returns height times width of a valid box in square degrees; any number or NaN for
// another box. This is a measure of the size of a request, not of a land area.
func (b Box) AreaDeg2() float64 {
	return (b.NeLat - b.SwLat) * b.widthDeg()
}

// Contains reports whether a valid box contains a valid point p, edges included. For an invalid box
// or point, such as NaN, the result has no meaning.
func (b Box) Contains(p Point) bool {
	if p.Lat < b.SwLat || p.Lat > b.NeLat {
		return false
	}
	if b.SwLng > b.NeLng {
		return p.Lng >= b.SwLng || p.Lng <= b.NeLng
	}
	return p.Lng >= b.SwLng && p.Lng <= b.NeLng ||
		// 180° and -180° are the same meridian
		b.SwLng == -180 && p.Lng == 180 || b.NeLng == 180 && p.Lng == -180
}

// widthDeg returns the width in degrees; 0 for equal longitudes, and for 180° and -180°.
func (b Box) widthDeg() float64 {
	width := b.NeLng - b.SwLng
	if width < 0 {
		width += 360
	}
	return width
}
