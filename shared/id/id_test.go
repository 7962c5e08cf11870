package id

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"
)

var now = time.Date(2026, 11, 5, 10, 20, 30, 123_000_000, time.UTC)

func TestNew_AscendsWithinMillisecond(t *testing.T) {
	var ids []string
	for range 1000 {
		ids = append(ids, New(Event, now))
	}
	if !slices.IsSorted(ids) || len(slices.Compact(ids)) != 1000 {
		t.Fatal("ids of the same millisecond are not strictly ascending")
	}
}

func TestNew_ConcurrentIDsAreUnique(t *testing.T) {
	t.Parallel()
	var (
		wg   sync.WaitGroup
		seen sync.Map
	)
	for range 8 {
		wg.Go(func() {
			for range 500 {
				if _, duplicate := seen.LoadOrStore(New(Request, now), true); duplicate {
					t.Error("got a duplicate id")
				}
			}
		})
	}
	wg.Wait()
}

func TestTime_ReturnsCreationTime(t *testing.T) {
	t.Parallel()
	if got := Time(New(Session, now)); !got.Equal(now) {
		t.Errorf("got time %s, want %s", got, now)
	}
	for _, broken := range []string{"", "gms", "gms_", "01ARZ3NDEKTSV4RRFFQ69G5FAV", "gms_01ARZ3NDEKTSV4RRFFQ69G5FA!", "gms-01ARZ3NDEKTSV4RRFFQ69G5FAV"} {
		if got := Time(broken); !got.IsZero() {
			t.Errorf("Time(%q): got %s, want the zero time", broken, got)
		}
	}
}

func TestNew_BrokenClockGivesValidIDs(t *testing.T) {
	t.Parallel()
	for _, at := range []time.Time{time.Unix(-1, 0), {}, time.UnixMilli(int64(ulid.MaxTime()) + 1)} {
		if got := New(Tenant, at); !Valid(Tenant, got) || !Time(got).Equal(time.UnixMilli(0)) {
			t.Errorf("at %s: got %q, want a valid id with time 0", at, got)
		}
	}
}

func TestNew_EntropyOverflowRestarts(t *testing.T) {
	entropy.Lock()
	saved := entropy.MonotonicEntropy
	entropy.MonotonicEntropy = ulid.Monotonic(strings.NewReader(strings.Repeat("\xff", 64)), 0)
	entropy.Unlock()
	defer func() { entropy.MonotonicEntropy = saved }()
	for range 3 {
		if got := New(Tenant, now); !Valid(Tenant, got) {
			t.Fatalf("got %q, want a valid id", got)
		}
	}
}

func TestParse_AcceptsOnlyCanonicalForm(t *testing.T) {
	t.Parallel()
	const good = "ppt_01ARZ3NDEKTSV4RRFFQ69G5FAV"
	if !Valid(Property, good) || !Valid(Property, "ppt_7ZZZZZZZZZZZZZZZZZZZZZZZZZ") {
		t.Fatal("Valid rejects a canonical id")
	}
	for _, bad := range []string{
		"", "ppt_", good[4:], "tnt_" + good[4:], "PPT_" + good[4:], strings.ToLower(good), "ppt_01ARZ3NDEKTSV4RRFFQ69G5FaV",
		good + "A", good[:29], good + " ", " " + good, "ppt_01ARZ3NDEKTSV4RRFFQ69G5FA!", "ppt_01ARZ3NDEKTSV4RRFFQ69G5FAU",
		"ppt_01ARZ3NDEKTSV4RRFFQ69G5FAI", "ppt_01ARZ3NDEKTSV4RRFFQ69G5FAL", "ppt_01ARZ3NDEKTSV4RRFFQ69G5FAO",
		"ppt_8ZZZZZZZZZZZZZZZZZZZZZZZZZ", "ppt_01ARZ3NDEKTSV4RRFFQ69G5F\xff\xff", "ppt_01ARZ3NDEKTSV4RRFFQ69G5FA\x00",
	} {
		if _, err := Parse(Property, bad); !errors.Is(err, ErrMalformed) {
			t.Errorf("Parse(%q): got %v, want ErrMalformed", bad, err)
		}
		if _, err := UUID(Property, bad); !errors.Is(err, ErrMalformed) {
			t.Errorf("UUID(%q): got %v, want ErrMalformed", bad, err)
		}
	}
}

func TestUUID_RoundTrip(t *testing.T) {
	t.Parallel()
	for range 100 {
		s := New(Tenant, now)
		u, err := UUID(Tenant, s)
		if err != nil {
			t.Fatal(err)
		}
		if back := FromUUID(Tenant, u); back != s {
			t.Fatalf("got %s, want %s", back, s)
		}
	}
	if all := FromUUID(Tenant, [16]byte(slices.Repeat([]byte{0xff}, 16))); all != "tnt_7ZZZZZZZZZZZZZZZZZZZZZZZZZ" {
		t.Errorf("got %s for all ones", all)
	}
}

func FuzzParse_AcceptsOnlyCanonicalForm(f *testing.F) {
	f.Add("gms_01ARZ3NDEKTSV4RRFFQ69G5FAV")
	f.Add("gms_01arz3ndektsv4rrffq69g5fav")
	f.Fuzz(func(t *testing.T, s string) {
		u, err := UUID(Session, s)
		if err == nil && FromUUID(Session, u) != s {
			t.Fatalf("Parse accepted %q, which is not canonical", s)
		}
	})
}

func BenchmarkNew(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		New(Request, now)
	}
}

func TestDerive_IsDeterministic(t *testing.T) {
	t.Parallel()
	at := time.UnixMilli(1_790_000_000_123)
	first := Derive(Event, at, "gms_1", "a")
	if !Valid(Event, first) || !Time(first).Equal(at) || Derive(Event, at, "gms_1", "a") != first {
		t.Fatalf("got %s, want a valid id with time %s, and the same id again", first, at)
	}
	for _, other := range []string{
		Derive(Event, at, "gms_1", "b"), Derive(Event, at, "gms_2", "a"), Derive(Event, at, "gms_1a"), Derive(Event, at, "gms_", "1a"),
		Derive(Event, at.Add(time.Millisecond), "gms_1", "a"), Derive(Event, at, "gms_1", "a", ""),
	} {
		if other == first || !Valid(Event, other) {
			t.Errorf("other input: got %s, want another valid id", other)
		}
	}
	for _, odd := range []time.Time{{}, time.Date(20_000, 1, 1, 0, 0, 0, 0, time.UTC)} {
		if got := Derive(PageView, odd, "x"); !Valid(PageView, got) {
			t.Errorf("at %v: got %s, want a valid id", odd, got)
		}
	}
}
