package geo

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

func newRand() *rand.Rand { return rand.New(rand.NewPCG(3, 14)) }

// edgeCasePoint returns a random point, often near an edge case of grids: a pole, the antimeridian,
// a vertex or an edge of the icosahedron.
func edgeCasePoint(r *rand.Rand) Point {
	near := math.Pow(10, -6*r.Float64())
	anywhere := direction(math.Asin(2*r.Float64()-1), 2*math.Pi*r.Float64())
	corner := faceCorners[r.IntN(20)]
	switch r.IntN(6) {
	case 0:
		return pointAt(vector{0, 0, 1 - 2*float64(r.IntN(2))}.plus(near, anywhere))
	case 1:
		return Point{180*r.Float64() - 90, (180 - near) * (1 - 2*float64(r.IntN(2)))}
	case 2:
		return pointAt(vertices[corner[0]].plus(near, anywhere))
	case 3:
		return pointAt(vertices[corner[0]].plus(r.Float64(), vertices[corner[1]]).plus(near, anywhere))
	default:
		return pointAt(anywhere)
	}
}

func pointAt(v vector) Point {
	v = v.unit()
	return Point{math.Asin(v[2]) * 180 / math.Pi, math.Atan2(v[1], v[0]) * 180 / math.Pi}
}

// destination returns the point at a distance and bearing from p.
func destination(p Point, km, bearing float64) Point {
	v := p.vector()
	east := direction(0, radians(p.Lng)+math.Pi/2)
	sin, cos := math.Sincos(bearing)
	ahead := vector{}.plus(sin, east).plus(cos, v.cross(east))
	sin, cos = math.Sincos(km / earthRadiusKm)
	return pointAt(vector{}.plus(cos, v).plus(sin, ahead))
}

// assertCovered checks that the cover has the cell of p, and the ancestor of a finer cell of p.
func assertCovered(t *testing.T, cover []Cell, p Point, finer int) bool {
	t.Helper()
	res := cover[0].Res()
	own, ancestor := CellAt(p, res), CellAt(p, max(res, finer)).Parent(res)
	for _, c := range []Cell{own, ancestor} {
		if _, found := slices.BinarySearch(cover, c); !found {
			t.Errorf("point %v: the cover %v lacks the cell %v", p, cover, c)
			return false
		}
	}
	return true
}

func TestCoverCircle_CoversEveryPoint(t *testing.T) {
	t.Parallel()
	r := newRand()
	for range 500 {
		centre, km, most := edgeCasePoint(r), 3000*math.Pow(10, -6*r.Float64()), 3+r.IntN(60)
		cover := CoverCircle(centre, km, most)
		if len(cover) == 0 && km < 500 && most >= 12 {
			t.Fatalf("%v, %v km: got no cover, want at most %d cells", centre, km, most)
		}
		if len(cover) > most {
			t.Fatalf("%v, %v km: got %d cells, want at most %d", centre, km, len(cover), most)
		}
		for i := 0; i < 200 && len(cover) > 0; i++ {
			// mostly near the rim
			p := destination(centre, km*(1-math.Pow(r.Float64(), 3))*0.9999999, 2*math.Pi*r.Float64())
			if !assertCovered(t, cover, p, r.IntN(MaxRes+1)) {
				t.Fatalf("circle: %v, %v km", centre, km)
			}
		}
	}
}

func TestCoverBox_CoversEveryPoint(t *testing.T) {
	t.Parallel()
	r := newRand()
	for range 500 {
		sw := edgeCasePoint(r)
		height, width := 40*math.Pow(10, -5*r.Float64()), 90*math.Pow(10, -5*r.Float64())
		b := Box{sw.Lat, sw.Lng, math.Min(sw.Lat+height, 90), sw.Lng + width}
		if b.NeLng > 180 {
			b.NeLng -= 360
		}
		if !b.Valid() {
			continue // at the pole
		}
		most := 3 + r.IntN(60)
		cover := CoverBox(b, most)
		if len(cover) > most {
			t.Fatalf("%v: got %d cells, want at most %d", b, len(cover), most)
		}
		for i := 0; i < 200 && len(cover) > 0; i++ {
			p := Point{sw.Lat + (b.NeLat-sw.Lat)*edgeBiased(r), sw.Lng + width*edgeBiased(r)}
			if p.Lng > 180 {
				p.Lng -= 360
			}
			if b.Contains(p) && !assertCovered(t, cover, p, r.IntN(MaxRes+1)) {
				t.Fatalf("box: %v", b)
			}
		}
	}
}

// edgeBiased returns a random number from 0 to 1, often exactly 0 or 1.
func edgeBiased(r *rand.Rand) float64 {
	return math.Max(0, math.Min(r.Float64()*1.5-0.25, 1))
}

func TestCover_OneResolutionSortedAndFinest(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name      string
		cover     []Cell
		most, res int
	}{
		{"a corner of a town", CoverCircle(Point{34.5553, 69.2075}, 0.5, 32), 32, 8},
		{"a town", CoverCircle(Point{34.5553, 69.2075}, 10, 32), 32, 6},
		{"a province", CoverCircle(Point{34.5553, 69.2075}, 80, 32), 32, 4},
		{"a country", CoverBox(Box{29.4, 60.5, 38.5, 74.9}, 32), 32, 2},
		{"a point", CoverCircle(Point{34.5553, 69.2075}, 0, 4), 4, 8},
		{"a thousand cells", CoverCircle(Point{34.5553, 69.2075}, 15, 1500), 1500, 8},
		{"the pole", CoverCircle(Point{90, 0}, 100, 32), 32, 4},
		{"Fiji", CoverBox(Box{-20, 176, -15, -178}, 32), 32, 2},
		{"the world", CoverBox(Box{-90, -180, 90, 180}, 122), 122, 0},
		{"the world, as a circle", CoverCircle(Point{34, 69}, 30000, 122), 122, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			if len(c.cover) == 0 || len(c.cover) > c.most || c.cover[0].Res() != c.res {
				t.Errorf("got %d cells %v, want at most %d of resolution %d", len(c.cover), c.cover, c.most, c.res)
				return
			}
			for i, cell := range c.cover {
				if !cell.Valid() || cell.Res() != c.res || i > 0 && cell <= c.cover[i-1] {
					t.Errorf("got %v, want sorted cells of resolution %d", c.cover, c.res)
					break
				}
			}
		})
	}
}

// A cover may contain cells just beyond the rim, because descendants may reach over the rim, but no
// cells further away.
func TestCoverCircle_ContainsNoDistantCell(t *testing.T) {
	t.Parallel()
	r := newRand()
	for range 300 {
		centre, km := edgeCasePoint(r), 200*math.Pow(10, -4*r.Float64())
		cover := CoverCircle(centre, km, 40)
		acrossKm := spacings[cover[0].Res()] * earthRadiusKm
		for i := range 40000 {
			if len(cover) == 0 {
				break
			}
			p := destination(centre, (km+acrossKm)*math.Sqrt(r.Float64()), 2*math.Pi*r.Float64())
			if i == 39999 {
				t.Fatalf("%v, %v km: the cover has distant cells %v", centre, km, cover)
			}
			if at, found := slices.BinarySearch(cover, CellAt(p, cover[0].Res())); found {
				cover = slices.Delete(cover, at, at+1)
			}
		}
	}
}

func TestCover_InvalidInputHasNoCover(t *testing.T) {
	t.Parallel()
	kabul := Point{34.5553, 69.2075}
	for name, cover := range map[string][]Cell{
		"invalid centre":           CoverCircle(Point{91, 0}, 1, 32),
		"negative radius":          CoverCircle(kabul, -1, 32),
		"radius not a number":      CoverCircle(kabul, math.NaN(), 32),
		"infinite radius":          CoverCircle(kabul, math.Inf(1), 32),
		"no cells":                 CoverCircle(kabul, 1, 0),
		"negative number of cells": CoverCircle(kabul, 1, -1),
		"inverted box":             CoverBox(Box{12, 20, 10, 25}, 32),
		"too large":                CoverBox(Box{-90, -180, 90, 180}, 121),
	} {
		t.Run(name, func(t *testing.T) {
			if cover != nil {
				t.Errorf("got %v, want nil", cover)
			}
		})
	}
}

func BenchmarkCoverCircle(b *testing.B) {
	for b.Loop() {
		CoverCircle(Point{34.5553, 69.2075}, 10, 32)
	}
}

func BenchmarkCoverBox(b *testing.B) {
	for b.Loop() {
		CoverBox(Box{34.4, 69.0, 34.7, 69.4}, 32)
	}
}
