package id

import (
	"slices"
	"testing"
	"time"
)

func TestMonotonic_AscendsDespiteOtherIDs(t *testing.T) {
	t.Parallel()
	var m Monotonic
	var ids []string
	for range 100 {
		ids = append(ids, m.New(Event, now))
		New(Event, now.Add(time.Millisecond)) // so that New continues with other random bits
	}
	ids = append(ids, m.New(Event, now.Add(time.Millisecond)), m.New(Event, now))
	if !slices.IsSorted(ids) || len(slices.Compact(ids)) != 102 {
		t.Error("ids of a Monotonic are not strictly ascending")
	}
	for _, id := range ids {
		if !Valid(Event, id) {
			t.Errorf("got %s, want a valid id", id)
		}
	}
	if at := Time(ids[99]); !at.Equal(now) {
		t.Errorf("got time %v, want %v", at, now)
	}
}

func TestSuccessor_IsLeastGreaterID(t *testing.T) {
	t.Parallel()
	for before, after := range map[string]string{
		"01KD1HS7J00000000000000000": "01KD1HS7J00000000000000001",
		"01KD1HS7J0000000000000ZZZZ": "01KD1HS7J00000000000010000",
		"01KD1HS7J0ZZZZZZZZZZZZZZZZ": "01KD1HS7J10000000000000000", // carry into the time
	} {
		t.Run(before, func(t *testing.T) {
			u, err := parse(before)
			if err != nil {
				t.Fatal(err)
			}
			if got := successor(u).String(); got != after {
				t.Errorf("got %s, want %s", got, after)
			}
		})
	}
}
