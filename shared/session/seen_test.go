package session

import (
	"testing"
	"time"
)

func TestWhenASessionWasLastSeenIsNoted(t *testing.T) {
	d := newDesk(t)
	seen := func(id string) float64 { return d.rdb.ZScore(t.Context(), d.keys.Seen(lane(id)), id).Val() }
	s := d.visit(t, "", "User-Agent", firefox)
	if got := seen(s.ID); got != float64(d.time.UnixMilli()) {
		t.Errorf("at the first visit: %.0f", got)
	}
	first := d.time
	d.time = d.time.Add(touchEvery / 2)
	if d.visit(t, s.ID, "User-Agent", firefox); seen(s.ID) != float64(first.UnixMilli()) {
		t.Error("noted twice within a minute")
	}
	d.time = d.time.Add(24 * time.Hour)
	late := d.read(t, s.ID, "User-Agent", firefox)
	d.time = d.time.Add(2 * touchEvery)
	if d.visit(t, s.ID, "User-Agent", firefox); seen(s.ID) != float64(d.time.UnixMilli()) {
		t.Error("a later visit is not noted")
	}
	if d.save(t, late); seen(s.ID) != float64(d.time.UnixMilli()) {
		t.Error("the earlier of two visits at once went last and counts")
	}
	other := d.visit(t, "", "User-Agent", iphone)
	if err := d.Purge(t.Context(), d.rdb, s, new(Lists)); err != nil {
		t.Fatal(err)
	}
	if seen(s.ID) != 0 || seen(other.ID) == 0 {
		t.Error("a clear takes the wrong note, or none")
	}
}
