package session

import (
	"strings"
	"testing"
	"time"
)

func queryHash(digit string) string { return "sha256:" + strings.Repeat(digit, 64) }

func TestSessionResumeSearch_ExpiresAfterAnHour(t *testing.T) {
	t.Parallel()
	s := &Session{}
	first, fresh := s.ResumeSearch(queryHash("a"), testNow)
	if !fresh {
		t.Fatal("the first search of a guest is not fresh")
	}
	if again, fresh := s.ResumeSearch(queryHash("a"), testNow.Add(59*time.Minute)); fresh || again != first {
		t.Errorf("within the hour: got %s (fresh %t), want %s", again, fresh, first)
	}
	if next, fresh := s.ResumeSearch(queryHash("a"), testNow.Add(time.Hour)); !fresh || next == first {
		t.Errorf("after the hour: got %s (fresh %t), want a fresh id other than %s", next, fresh, first)
	}
}

func TestSessionResumeSearch_KeepsFiveConcurrentSearches(t *testing.T) {
	t.Parallel()
	s := &Session{}
	ids := map[string]string{}
	for _, tab := range []string{"a", "b", "c", "d", "e"} {
		ids[tab], _ = s.ResumeSearch(queryHash(tab), testNow)
	}
	for tab, want := range ids {
		if got, fresh := s.ResumeSearch(queryHash(tab), testNow.Add(time.Minute)); fresh || got != want {
			t.Errorf("tab %s: got %s (fresh %t), want %s", tab, got, fresh, want)
		}
	}
	if _, fresh := s.ResumeSearch(queryHash("f"), testNow); !fresh || len(s.searches) != maxSearches {
		t.Errorf("sixth search: fresh %t, %d running; want true and %d", fresh, len(s.searches), maxSearches)
	}
}

func TestParseSearches_RoundTrip(t *testing.T) {
	t.Parallel()
	s := &Session{}
	want, _ := s.ResumeSearch(queryHash("a"), testNow)
	s.ResumeSearch(queryHash("b"), testNow)
	read := &Session{searches: parseSearches(s.changedFields["activeSearches"] + ",garbage,x=y")}
	if got, fresh := read.ResumeSearch(queryHash("a"), testNow); fresh || got != want {
		t.Errorf("got %s (fresh %t), want %s", got, fresh, want)
	}
}
