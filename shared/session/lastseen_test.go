package session

import (
	"slices"
	"testing"
	"time"
)

func TestLastSeen_RecordedOncePerInterval(t *testing.T) {
	d := newHarness(t)
	seen := func(id string) float64 { return d.rdb.ZScore(t.Context(), d.keys.LastSeen(shard(id), false), id).Val() }
	s := d.request(t, "", "User-Agent", firefox)
	if got := seen(s.ID); got != float64(d.time.UnixMilli()) {
		t.Errorf("at the first visit: %.0f", got)
	}
	first := d.time
	d.time = d.time.Add(touchInterval / 2)
	if d.request(t, s.ID, "User-Agent", firefox); seen(s.ID) != float64(first.UnixMilli()) {
		t.Error("noted twice within a minute")
	}
	d.time = d.time.Add(24 * time.Hour)
	late := d.begin(t, s.ID, "User-Agent", firefox)
	d.time = d.time.Add(2 * touchInterval)
	if d.request(t, s.ID, "User-Agent", firefox); seen(s.ID) != float64(d.time.UnixMilli()) {
		t.Error("a later visit is not noted")
	}
	if d.save(t, late); seen(s.ID) != float64(d.time.UnixMilli()) {
		t.Error("the earlier of two visits at once went last and counts")
	}
	other := d.request(t, "", "User-Agent", iphone)
	if err := d.Purge(t.Context(), d.rdb, s.ID); err != nil {
		t.Fatal(err)
	}
	if seen(s.ID) != 0 || seen(other.ID) == 0 {
		t.Error("a clear takes the wrong note, or none")
	}
	silent := d.request(t, "", "User-Agent", firefox, "DNT", "1")
	if seen(silent.ID) != 0 || d.rdb.ZScore(t.Context(), d.keys.LastSeen(shard(silent.ID), true), silent.ID).Val() == 0 {
		t.Error("the end of a session that may not be spoken of would be told")
	}
}

func TestRemoveIdle_KeepsReturnedSessions(t *testing.T) {
	d := newHarness(t)
	gone, back := d.request(t, "", "User-Agent", firefox), d.request(t, "", "User-Agent", firefox)
	read := map[*Session][]Idle{}
	for _, s := range []*Session{gone, back} {
		var err error
		read[s], err = ReadIdle(t.Context(), d.rdb, d.keys, shard(s.ID), false, d.time.Add(time.Millisecond), 10)
		if err != nil || !slices.Contains(read[s], Idle{s.ID, d.time}) {
			t.Fatalf("%v %v", read[s], err)
		}
	}
	if quiet, err := ReadIdle(t.Context(), d.rdb, d.keys, shard(gone.ID), false, d.time, 10); err != nil || len(quiet) != 0 {
		t.Errorf("seen just now, and quiet: %v %v", quiet, err)
	}
	d.time = d.time.Add(touchInterval)
	d.request(t, back.ID, "User-Agent", firefox)
	for _, s := range []*Session{gone, back} {
		if err := RemoveIdle(t.Context(), d.rdb, d.keys, shard(s.ID), false, read[s]); err != nil {
			t.Fatal(err)
		}
	}
	for s, want := range map[*Session]bool{gone: false, back: true} {
		quiet, err := ReadIdle(t.Context(), d.rdb, d.keys, shard(s.ID), false, d.time.Add(time.Second), 10)
		if listed := slices.ContainsFunc(quiet, func(q Idle) bool { return q.ID == s.ID }); err != nil || listed != want {
			t.Errorf("listed %t, want %t: %v", listed, want, err)
		}
	}
}
