package geo

import (
	"math"
	"testing"
)

func TestPoint_OutOfRangeIsInvalid(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		p    Point
		want bool
	}{
		{Point{}, true},
		{Point{90, 180}, true},
		{Point{-90, -180}, true},
		{Point{90.0000001, 0}, false},
		{Point{0, -180.0000001}, false},
		{Point{math.NaN(), 0}, false},
		{Point{0, math.NaN()}, false},
		{Point{math.Inf(1), 0}, false},
		{Point{0, math.Inf(-1)}, false},
	} {
		if got := c.p.Valid(); got != c.want {
			t.Errorf("%v: got valid %t, want %t", c.p, got, c.want)
		}
	}
}

func TestDistanceKm_KnownDistances(t *testing.T) {
	t.Parallel()
	kabul, herat := Point{34.5553, 69.2075}, Point{34.3529, 62.2040}
	quarter := earthRadiusKm * math.Pi / 2
	for _, c := range []struct {
		name string
		a, b Point
		want float64
	}{
		{"a city to itself", kabul, kabul, 0},
		{"Kabul to Herat", kabul, herat, 642.5},
		{"Herat to Kabul", herat, kabul, 642.5},
		{"over the antimeridian", Point{0, 179.5}, Point{0, -179.5}, quarter / 90},
		{"pole to pole", Point{90, 12}, Point{-90, -120}, 2 * quarter},
		{"to the antipode", Point{30, 20}, Point{-30, -160}, 2 * quarter},
		{"a metre", Point{34, 69}, Point{34 + 1/(quarter*1000/90), 69}, 0.001},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := DistanceKm(c.a, c.b); math.Abs(got-c.want) > 0.1 && math.Abs(got-c.want) > 1e-6*c.want ||
				c.want < 1 && math.Abs(got-c.want) > 1e-9 {
				t.Errorf("got %v km, want %v", got, c.want)
			}
		})
	}
}

func TestBox_ValidEnclosesArea(t *testing.T) {
	t.Parallel()
	nan, inf := math.NaN(), math.Inf(1)
	for _, c := range []struct {
		name string
		b    Box
		area float64 // 0: not valid
	}{
		{"plain", Box{10, 20, 12, 25}, 10},
		{"the world", Box{-90, -180, 90, 180}, 180 * 360},
		{"over the antimeridian", Box{-20, 170, -10, -170}, 200},
		{"upside down", Box{12, 20, 10, 25}, 0},
		{"no height", Box{12, 20, 12, 25}, 0},
		{"no width", Box{10, 20, 12, 20}, 0},
		{"no width, 180 and -180", Box{10, 180, 12, -180}, 0},
		{"beyond the pole", Box{80, 20, 91, 25}, 0},
		{"beyond the antimeridian", Box{10, 170, 12, 190}, 0},
		{"not a number", Box{nan, 20, 12, 25}, 0},
		{"not a number", Box{10, 20, 12, nan}, 0},
		{"infinite", Box{10, -inf, 12, inf}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := c.b.Valid(); got != (c.area > 0) {
				t.Errorf("got valid %t, want %t", got, c.area > 0)
			}
			if got := c.b.AreaDeg2(); c.area > 0 && math.Abs(got-c.area) > 1e-9 {
				t.Errorf("got %v square degrees, want %v", got, c.area)
			}
		})
	}
}

func TestBox_ContainsItsEdges(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		b    Box
		p    Point
		want bool
	}{
		{Box{10, 20, 12, 25}, Point{11, 22}, true},
		{Box{10, 20, 12, 25}, Point{10, 25}, true},
		{Box{10, 20, 12, 25}, Point{12.01, 22}, false},
		{Box{10, 20, 12, 25}, Point{11, 25.01}, false},
		{Box{-20, 170, -10, -170}, Point{-15, 180}, true},
		{Box{-20, 170, -10, -170}, Point{-15, -180}, true},
		{Box{-20, 170, -10, -170}, Point{-15, -175}, true},
		{Box{-20, 170, -10, -170}, Point{-15, 0}, false},
		{Box{10, 170, 12, 180}, Point{11, -180}, true},
		{Box{10, -180, 12, -170}, Point{11, 180}, true},
	} {
		if got := c.b.Contains(c.p); got != c.want {
			t.Errorf("%v contains %v: got %t, want %t", c.b, c.p, got, c.want)
		}
	}
}
