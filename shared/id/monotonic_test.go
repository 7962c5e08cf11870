package id

import (
	"slices"
	"testing"
	"time"
)

func TestMonotonic_AscendsDespiteOtherIDs(t *testing.T) {
	t.Parallel()
	var s Monotonic
	var ids []string
	for range 100 {
		ids = append(ids, s.New(Event, now))
		New(Event, now.Add(time.Millisecond)) // after which New begins anywhere
	}
	ids = append(ids, s.New(Event, now.Add(time.Millisecond)), s.New(Event, now))
	if !slices.IsSorted(ids) || len(slices.Compact(ids)) != 102 {
		t.Error("ids of a series are not strictly ascending")
	}
	for _, id := range ids {
		if !Valid(Event, id) {
			t.Errorf("%s is none", id)
		}
	}
	if at := Time(ids[99]); !at.Equal(now) {
		t.Errorf("minted at %v, it says %v", now, at)
	}
}

func TestSuccessor_IsLeastGreaterID(t *testing.T) {
	t.Parallel()
	for before, after := range map[string]string{
		"01KD1HS7J00000000000000000": "01KD1HS7J00000000000000001",
		"01KD1HS7J0000000000000ZZZZ": "01KD1HS7J00000000000010000",
		"01KD1HS7J0ZZZZZZZZZZZZZZZZ": "01KD1HS7J10000000000000000", // no more of that millisecond
	} {
		t.Run(before, func(t *testing.T) {
			u, err := parse(before)
			if err != nil {
				t.Fatal(err)
			}
			if got := successor(u).String(); got != after {
				t.Errorf("after %s comes %s, want %s", before, got, after)
			}
		})
	}
}
