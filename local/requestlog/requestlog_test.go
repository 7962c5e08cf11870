package requestlog

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

var noon = time.Date(2026, 11, 21, 12, 0, 3, 0, time.UTC)

// requestLine returns the log record of a request, as package web writes it.
func requestLine(at time.Time, url string, status int, cache string) string {
	return fmt.Sprintf(`{"time":%q,"severity":"INFO","message":"m","httpRequest":{"requestMethod":"GET","requestUrl":%q,"status":%d},"function":"F","cache":%q}`+"\n",
		at.Format(time.RFC3339Nano), url, status, cache)
}

// newTestLog returns the path of a log file and a function that appends to it.
func newTestLog(t *testing.T) (path string, add func(string)) {
	path = filepath.Join(t.TempDir(), "functions.jsonl")
	return path, func(text string) {
		file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		if _, err := file.WriteString(text); err != nil {
			t.Fatal(err)
		}
	}
}

func readReport(t *testing.T, of *Follower, now time.Time) Report {
	t.Helper()
	r, err := of.Read(now)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Slots) != slotCount || !r.Slots[slotCount-1].At.Equal(now.Truncate(SlotSeconds*time.Second)) {
		t.Fatalf("%d slots, the last of %v", len(r.Slots), r.Slots[len(r.Slots)-1].At)
	}
	return r
}

func TestFollower_CountsEachRequestOnceInItsSlot(t *testing.T) {
	t.Parallel()
	path, add := newTestLog(t)
	traffic := Follow(path, "/bff/")
	if r := readReport(t, traffic, noon); r.Slots[slotCount-1].Requests != 0 || len(r.Breakers) != 0 {
		t.Fatalf("without a log: %+v", r)
	}
	add(requestLine(noon, "/bff/search", 200, "HIT") + requestLine(noon, "/bff/search", 200, "MISS") + requestLine(noon.Add(-10*time.Second), "/bff/facets", 429, ""))
	add(requestLine(noon, "/internal/jobs/relay", 200, "") + "no JSON\n")
	half := requestLine(noon, "/bff/search", 503, "STALE")
	add(half[:20])
	for range 2 { // the second Read finds no new line
		r := readReport(t, traffic, noon)
		if s := r.Slots[slotCount-1]; s.Requests != 2 || s.Hit != 1 || s.Miss != 1 || s.Refused+s.Failed+s.Stale != 0 {
			t.Errorf("now: %+v", s)
		}
		if s := r.Slots[slotCount-3]; s.Requests != 1 || s.Refused != 1 {
			t.Errorf("ten seconds ago: %+v", s)
		}
	}
	add(half[20:])
	if s := readReport(t, traffic, noon).Slots[slotCount-1]; s.Requests != 3 || s.Failed != 1 || s.Stale != 1 {
		t.Errorf("a line completed later: got %+v", s)
	}
	later := noon.Add(slotCount * SlotSeconds * time.Second)
	add(requestLine(noon, "/bff/search", 200, "HIT") + requestLine(later, "/bff/search", 200, "HIT") + requestLine(noon, "/bff/search", 200, "HIT"))
	for i, s := range readReport(t, traffic, later).Slots {
		if want := i / (slotCount - 1); s.Requests != want {
			t.Errorf("five minutes later, slot %d: %+v", i, s)
		}
	}
}

func TestFollower_BreakerIsOpenWhileAnyFunctionHasItOpen(t *testing.T) {
	t.Parallel()
	path, add := newTestLog(t)
	traffic := Follow(path, "/bff/")
	change := func(from, to string) {
		add(fmt.Sprintf(`{"message":"a breaker changed its state","upstream":"pricing","from":%q,"to":%q}`+"\n", from, to))
	}
	for _, step := range []struct{ from, to, want string }{
		{"closed", "open", "open"}, // of a function
		{"closed", "open", "open"}, // of another function
		{"open", "half-open", "open"},
		{"half-open", "closed", "open"},
		{"open", "half-open", "half-open"},
		{"half-open", "closed", "closed"},
	} {
		change(step.from, step.to)
		if got := readReport(t, traffic, noon).Breakers["pricing"]; got != step.want {
			t.Errorf("after %s to %s: %s, want %s", step.from, step.to, got, step.want)
		}
	}
}

func TestFollower_SkipsToTailOfLargeLog(t *testing.T) {
	t.Parallel()
	path, add := newTestLog(t)
	traffic := Follow(path, "/bff/")
	one := requestLine(noon, "/bff/search", 200, "HIT")
	add(strings.Repeat(one, maxReadBytes/len(one)+1000))
	if n := readReport(t, traffic, noon).Slots[slotCount-1].Requests; n == 0 || n > maxReadBytes/len(one) {
		t.Errorf("%d requests", n)
	}
}

func TestFollower_RereadsTruncatedLog(t *testing.T) {
	t.Parallel()
	path, add := newTestLog(t)
	traffic := Follow(path, "/bff/")
	add(strings.Repeat(requestLine(noon, "/bff/search", 200, "HIT"), 3))
	readReport(t, traffic, noon)
	if err := os.Truncate(path, 0); err != nil {
		t.Fatal(err)
	}
	add(requestLine(noon, "/bff/search", 200, "HIT"))
	if s := readReport(t, traffic, noon).Slots[slotCount-1]; s.Requests != 4 {
		t.Errorf("%+v", s)
	}
}
