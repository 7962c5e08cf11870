package geo

import (
	"math"
	"slices"
)

// coverRes is the finest resolution of a cover: cells of about 0.7 km².
const coverRes = 8

const (
	// cellReach bounds the distance of the points of a cell, and of the descendants of any
	// resolution, from the centre of the cell, in spacings of the resolution. A child's centre is
	// 1/√7 of a spacing away from the parent's, and so on: the sum of 7^(-n/2) for n ≥ 1 is 0.608.
	// Every projected distance is shorter on the sphere; this compensates for the disagreement of
	// two faces about a centre beyond the common edge. The largest measured distance is 0.602.
	cellReach = 0.62
	// probeReach is the radius of a circle around the centre of a cell that lies inside the cell,
	// on the sphere: half a spacing shrinks to 0.316 at the corners of a face, and the difference
	// is a margin for the same disagreement.
	probeReach = 0.28
)

// CoverCircle returns a sorted set of H3 cells of the same resolution covering every point within
// radiusKm of the centre: for each point, the set has the cell of the resolution, and the ancestors
// of all finer cells. The resolution is the finest up to 8 with at most max cells. CoverCircle
// returns nil for an invalid centre, a negative, infinite or NaN radius, a max below 1, or if
// resolution 0 needs more than max cells. CPU and memory grow with max: CoverCircle abandons a
// resolution after max cells. Pure.
func CoverCircle(centre Point, radiusKm float64, max int) []Cell {
	if !centre.Valid() || !(radiusKm >= 0) || math.IsInf(radiusKm, 1) {
		return nil
	}
	radius := math.Min(radiusKm/earthRadiusKm, math.Pi)
	area := 2 * math.Pi * (1 - math.Cos(radius))
	return cover(area, max, func(by float64) region { return circle(centre, radius+by) })
}

// CoverBox returns a cover of a box, as CoverCircle of a circle; nil for an invalid box, a max
// below 1, or if resolution 0 needs more than max cells. Pure.
func CoverBox(b Box, max int) []Cell {
	if !b.Valid() {
		return nil
	}
	area := radians(b.widthDeg()) * (math.Sin(radians(b.NeLat)) - math.Sin(radians(b.SwLat)))
	return cover(area, max, func(by float64) region { return rectangle(b, by) })
}

// cover tries the resolutions from the finest. area is in steradians; grown returns the region
// enlarged by a distance in radians.
func cover(area float64, max int, grown func(by float64) region) []Cell {
	for res := coverRes; res >= 0; res-- {
		// cells in the middle of a face are the largest
		largest := math.Sqrt(3) / 2 * spacings[res] * spacings[res]
		if area > float64(max)*largest {
			continue
		}
		if cells, ok := coverAt(res, max, grown); ok {
			return cells
		}
	}
	return nil
}

// coverAt returns the cells that may touch the region; ok is false for more than max cells. The
// centre of such a cell is within cellReach of the region. The probes are dense enough to miss no
// cell: a probe is within probeReach of every such centre.
func coverAt(res, max int, grown func(by float64) region) (cells []Cell, ok bool) {
	spacing := spacings[res]
	near := grown(cellReach * spacing)
	found := make(map[Cell]struct{})
	for probe := range grown((cellReach + probeReach) * spacing).probes(probeReach * spacing * math.Sqrt2) {
		onFace, z := locate(probe, res)
		if !near.contains(centre(onFace, z, res)) {
			continue
		}
		found[cellOf(onFace, z, res)] = struct{}{}
		if len(found) > max {
			return nil, false
		}
	}
	cells = make([]Cell, 0, len(found))
	for c := range found {
		cells = append(cells, c)
	}
	slices.Sort(cells)
	return cells, true
}
