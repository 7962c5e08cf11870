package geo

import (
	"math"
	"testing"
)

func TestCellAt_MatchesReference(t *testing.T) {
	t.Parallel()
	for _, r := range reference(t) {
		if got := CellAt(r.p, r.res); got != r.cell {
			t.Errorf("CellAt(%v, %d): got %v, want %v", r.p, r.res, got, r.cell)
		}
	}
}

// Resolution r has 2 + 120·7^r cells: a wrong base cell site would miss cells or create invalid
// cells.
func TestCellAt_ReachesEveryCell(t *testing.T) {
	t.Parallel()
	everywhere := rectangle(Box{-90, -180, 90, 180}, 0)
	for res, want := range []int{122, 842, 5882} {
		found := map[Cell]bool{}
		for v := range everywhere.probes(spacings[res] / 4) {
			onFace, z := locate(v, res)
			c := cellOf(onFace, z, res)
			if !c.Valid() || c.Res() != res {
				t.Fatalf("got %v, want a cell of resolution %d", uint64(c), res)
			}
			found[c] = true
		}
		if len(found) != want {
			t.Errorf("resolution %d: got %d cells, want %d", res, len(found), want)
		}
	}
}

func TestCellAt_InvalidInputHasNoCell(t *testing.T) {
	t.Parallel()
	for _, p := range []Point{{91, 0}, {0, 181}, {math.NaN(), 0}, {0, math.Inf(1)}} {
		if c := CellAt(p, 8); c != 0 || c.Valid() {
			t.Errorf("CellAt(%v, 8): got %v, want 0", p, c)
		}
	}
	for _, res := range []int{-1, 16} {
		if c := CellAt(Point{34, 69}, res); c != 0 {
			t.Errorf("resolution %d: got %v, want 0", res, c)
		}
	}
}

func TestCellAt_AntimeridianHasOneSetOfCells(t *testing.T) {
	t.Parallel()
	for lat := -90.0; lat <= 90; lat += 7.3 {
		if east, west := CellAt(Point{lat, 180}, 10), CellAt(Point{lat, -180}, 10); east != west {
			t.Errorf("latitude %v: got %v at 180° and %v at -180°, want the same cell", lat, east, west)
		}
	}
	if a, b := CellAt(Point{90, 0}, 15), CellAt(Point{90, 123}, 15); a != b {
		t.Errorf("pole: got %v and %v, want the same cell", a, b)
	}
}

func BenchmarkCellAt(b *testing.B) {
	for b.Loop() {
		CellAt(Point{34.5553, 69.2075}, 10)
	}
}
