package session

import (
	"strings"
	"testing"
	"time"
)

func queryHash(digit string) string { return "sha256:" + strings.Repeat(digit, 64) }

func TestSessionResumeSearch_ExpiresAfterAnHour(t *testing.T) {
	s := &Session{}
	first, fresh := s.ResumeSearch(queryHash("a"), testNow)
	if !fresh {
		t.Fatal("the first search of a guest is not fresh")
	}
	if again, fresh := s.ResumeSearch(queryHash("a"), testNow.Add(59*time.Minute)); fresh || again != first {
		t.Errorf("within the hour the same query is %s (fresh %t), not %s", again, fresh, first)
	}
	if next, fresh := s.ResumeSearch(queryHash("a"), testNow.Add(time.Hour)); !fresh || next == first {
		t.Errorf("after the hour the id is still %s", next)
	}
}

func TestSessionResumeSearch_KeepsFiveConcurrentSearches(t *testing.T) {
	s := &Session{}
	ids := map[string]string{}
	for _, tab := range []string{"a", "b", "c", "d", "e"} {
		ids[tab], _ = s.ResumeSearch(queryHash(tab), testNow)
	}
	for tab, want := range ids {
		if got, fresh := s.ResumeSearch(queryHash(tab), testNow.Add(time.Minute)); fresh || got != want {
			t.Errorf("tab %s has %s (fresh %t), not %s", tab, got, fresh, want)
		}
	}
	if _, fresh := s.ResumeSearch(queryHash("f"), testNow); !fresh || len(s.searches) != maxSearches {
		t.Errorf("a sixth search: fresh %t, %d kept", fresh, len(s.searches))
	}
}

func TestParseSearches_RoundTrip(t *testing.T) {
	s := &Session{}
	want, _ := s.ResumeSearch(queryHash("a"), testNow)
	s.ResumeSearch(queryHash("b"), testNow)
	read := &Session{searches: parseSearches(s.changedFields["activeSearches"] + ",garbage,x=y")}
	if got, fresh := read.ResumeSearch(queryHash("a"), testNow); fresh || got != want {
		t.Errorf("read back as %s (fresh %t), not %s", got, fresh, want)
	}
}
