package session

import (
	"slices"
	"testing"
	"time"
)

// requireLastSeen fails the test unless Redis has this last-seen time of a session; the zero time
// stands for none.
func (h *harness) requireLastSeen(t *testing.T, id string, optedOut bool, want time.Time) {
	t.Helper()
	var got time.Time
	if score, err := h.rdb.ZScore(t.Context(), h.keys.LastSeen(shard(id), optedOut), id).Result(); err == nil {
		got = time.UnixMilli(int64(score))
	}
	if !got.Equal(want) {
		t.Errorf("last seen at %s (opted out %t), want %s", got, optedOut, want)
	}
}

func TestLastSeen_RecordedOncePerInterval(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	s := h.request(t, "")
	first := h.time
	h.requireLastSeen(t, s.ID, false, first)

	h.time = first.Add(touchInterval / 2)
	h.request(t, s.ID)
	h.requireLastSeen(t, s.ID, false, first)

	h.time = first.Add(24 * time.Hour)
	slow := h.begin(t, s.ID)
	h.time = h.time.Add(2 * touchInterval)
	h.request(t, s.ID)
	h.requireLastSeen(t, s.ID, false, h.time)
	h.save(t, slow) // the earlier of two concurrent requests saves last
	h.requireLastSeen(t, s.ID, false, h.time)
}

func TestLastSeen_PurgeDeletesOnlyTheSession(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	s, other := h.request(t, ""), h.request(t, "", "User-Agent", iphone)
	if err := h.Purge(t.Context(), h.rdb, s.ID); err != nil {
		t.Fatal(err)
	}
	h.requireLastSeen(t, s.ID, false, time.Time{})
	h.requireLastSeen(t, other.ID, false, h.time)
}

func TestLastSeen_OptedOutSessionsAreSeparate(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	s := h.request(t, "", "DNT", "1")
	h.requireLastSeen(t, s.ID, false, time.Time{})
	h.requireLastSeen(t, s.ID, true, h.time)
}

func TestRemoveIdle_KeepsReturnedSessions(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	idleBefore := func(s *Session, before time.Time) []Idle {
		t.Helper()
		idle, err := ReadIdle(t.Context(), h.rdb, h.keys, shard(s.ID), false, before, 10)
		if err != nil {
			t.Fatal(err)
		}
		return idle
	}
	gone, returned := h.request(t, ""), h.request(t, "")
	read := map[*Session][]Idle{}
	for _, s := range []*Session{gone, returned} {
		read[s] = idleBefore(s, h.time.Add(time.Millisecond))
		if want := (Idle{s.ID, h.time}); !slices.Contains(read[s], want) {
			t.Fatalf("idle sessions %v, want %v among them", read[s], want)
		}
	}
	if idle := idleBefore(gone, h.time); len(idle) != 0 {
		t.Errorf("idle sessions at the time of the request: %v, want none", idle)
	}
	h.time = h.time.Add(touchInterval)
	h.request(t, returned.ID)
	for _, s := range []*Session{gone, returned} {
		if err := RemoveIdle(t.Context(), h.rdb, h.keys, shard(s.ID), false, read[s]); err != nil {
			t.Fatal(err)
		}
	}
	for s, want := range map[*Session]bool{gone: false, returned: true} {
		idle := idleBefore(s, h.time.Add(time.Second))
		if got := slices.ContainsFunc(idle, func(i Idle) bool { return i.ID == s.ID }); got != want {
			t.Errorf("session %s is in the set: %t, want %t", s.ID, got, want)
		}
	}
}
