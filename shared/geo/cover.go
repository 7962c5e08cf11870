package geo

import (
	"math"
	"slices"
)

// coverRes is the finest resolution of a cover: cells of about 0.7 km².
const coverRes = 8

const (
	// cellReach is how far from its centre a cell or a descendant of any resolution gets, in spacings of its
	// resolution. A child's centre is 1/√7 of a spacing away from its parent's, and so on down: the sum of
	// 7^(-n/2) for n ≥ 1 is 0.608. Every projected distance is shorter on the sphere, which makes up for what
	// two faces disagree about a centre beyond their common edge: the furthest measured, all told, is 0.602.
	cellReach = 0.62
	// probeReach is a distance from its centre within which there is nothing but the cell, on the sphere: half a
	// spacing shrunk as at the corners of a face is 0.316, and the rest a margin for the same disagreement.
	probeReach = 0.28
)

// CoverCircle is a set of H3 cells of one resolution that covers every point within radiusKm of the centre: it contains
// each such point's cell of that resolution, and the ancestor, at that resolution, of each such point's every finer
// cell. The resolution is the finest up to 8 that needs at most max cells. They are sorted. A cover is nil when the
// arguments are not valid or resolution 0 needs more than max.
func CoverCircle(centre Point, radiusKm float64, max int) []Cell {
	if !centre.Valid() || !(radiusKm >= 0) || math.IsInf(radiusKm, 1) {
		return nil
	}
	radius := math.Min(radiusKm/earthRadiusKm, math.Pi)
	area := 2 * math.Pi * (1 - math.Cos(radius))
	return cover(area, max, func(by float64) region { return circle(centre, radius+by) })
}

// CoverBox does for a box what CoverCircle does for a circle.
func CoverBox(b Box, max int) []Cell {
	if !b.Valid() {
		return nil
	}
	area := radians(b.widthDeg()) * (math.Sin(radians(b.NeLat)) - math.Sin(radians(b.SwLat)))
	return cover(area, max, func(by float64) region { return rectangle(b, by) })
}

// cover tries the resolutions from the finest. The area is in steradians; grown is the region and all within
// so many radians of it.
func cover(area float64, max int, grown func(by float64) region) []Cell {
	for res := coverRes; res >= 0; res-- {
		largest := math.Sqrt(3) / 2 * spacings[res] * spacings[res] // no cell is larger than in the middle of a face
		if area > float64(max)*largest {
			continue
		}
		if cells, ok := coverAt(res, max, grown); ok {
			return cells
		}
	}
	return nil
}

// coverAt finds the cells whose centres are near enough to the region for them to touch it. It probes the plane so
// densely that no such cell is missed: a cell that counts has its centre within cellReach of the region, and some
// probe is within probeReach of that centre.
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
