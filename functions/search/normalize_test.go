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
		if rand.IntN(2) == 0 { // move an edge onto the grid
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
		const tolerance = 1e-8 // degrees: a millimetre
		if !s.Valid() || s.SwLat > b.SwLat+tolerance || s.SwLng > b.SwLng+tolerance || s.NeLat < b.NeLat-tolerance || s.NeLng < b.NeLng-tolerance {
			t.Fatalf("zoom %d: got %+v; want a valid box that covers %+v", zoom, s, b)
		}
	}
}

func TestRound_NegativeZeroBecomesZero(t *testing.T) {
	t.Parallel()
	if a, b := round(-0.0002, 3), round(0.0002, 3); 1/a != 1/b {
		t.Errorf("got %v and %v; want the same zero", a, b)
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
