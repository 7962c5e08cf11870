package search

import (
	"math/rand/v2"
	"testing"

	"melmastoon.ghasi.io/bff-consumer/shared/event"
	"melmastoon.ghasi.io/bff-consumer/shared/geo"
	"melmastoon.ghasi.io/bff-consumer/shared/problem"
)

func TestAreaCheck_Accepts25SquareDegreesAnywhere(t *testing.T) {
	t.Parallel()
	for range 2000 {
		lat, lng := round(rand.Float64()*170-85, 1), round(rand.Float64()*350-175, 1)
		north, east := lat+5, lng+5
		a := area{Mode: "bounding-box", BoundingBox: &box{SwLat: &lat, SwLng: &lng, NeLat: &north, NeLng: &east}}
		if lat+5 > 90 || lng+5 > 180 {
			continue
		}
		var f problem.FieldErrors
		if a.check(&f); len(f) > 0 {
			t.Fatalf("box %+v: got faults %v; want none", a.BoundingBox.value(), f)
		}
	}
}

func TestSnapToGrid_CoversBoxAndKeepsPositiveSize(t *testing.T) {
	t.Parallel()
	for range 20000 {
		size := []float64{1e-13, 1e-9, 1e-4, 0.1, 4}[rand.IntN(5)]
		b := geo.Box{SwLat: rand.Float64()*170 - 85, SwLng: rand.Float64()*350 - 175}
		if rand.IntN(2) == 0 { // an edge on the grid
			b.SwLat, b.SwLng = round(b.SwLat, 1), round(b.SwLng, 1)
		}
		b.NeLat, b.NeLng = b.SwLat+size, b.SwLng+size
		if !b.Valid() {
			continue
		}
		zoom := rand.IntN(24) - 1
		var z *int
		if zoom >= 0 {
			z = &zoom
		}
		s := snapToGrid(b, gridStep(z))
		const hair = 1e-8 // of a degree: a millimetre
		if !s.Valid() || s.SwLat > b.SwLat+hair || s.SwLng > b.SwLng+hair || s.NeLat < b.NeLat-hair || s.NeLng < b.NeLng-hair {
			t.Fatalf("zoom %d: %+v became %+v", zoom, b, s)
		}
	}
}

func TestRound_NegativeZeroBecomesZero(t *testing.T) {
	t.Parallel()
	if a, b := round(-0.0002, 3), round(0.0002, 3); 1/a != 1/b {
		t.Error("the meridian of Greenwich has two sides")
	}
}

func TestCampaignToken_RejectsAddresses(t *testing.T) {
	t.Parallel()
	for s, want := range map[string]bool{"203.0.113.7": false, "spring-2026": true, "12345678901": true, "john@example.com": false} {
		t.Run(s, func(t *testing.T) {
			if event.IsCampaignToken(s) != want {
				t.Errorf("got %t; want %t", !want, want)
			}
		})
	}
}
