package lua

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"melmastoon.ghasi.io/bff-consumer/shared/testkit/redistest"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func init() {
	scriptTests["cadence, record_group_session"] = func(t *testing.T, c redis.UniversalClient) {
		w := Windows{Short: 2 * time.Second, Long: time.Minute, MaxTimes: 8}
		bare := CadenceKeys{Group: "{g}", Cookie: "{g}:cookie"}
		own := CadenceKeys{Group: "{g}", Cookie: "{g}:cookie", Session: "{g}:own:1"}
		for i, step := range []struct {
			keys CadenceKeys
			at   time.Duration
			only bool // count without recording
			want CadenceCounts
		}{
			{bare, 0, true, CadenceCounts{SinceCookie: -time.Millisecond}},
			{bare, 0, false, CadenceCounts{Group: [2]int{1, 1}, SinceCookie: -time.Millisecond}},
			// the first own request is that of RecordGroupSession
			{own, time.Second, false, CadenceCounts{[2]int{2, 2}, [2]int{2, 2}, -time.Millisecond}},
			{own, 1999 * time.Millisecond, false, CadenceCounts{[2]int{3, 3}, [2]int{3, 3}, 999 * time.Millisecond}},
			{own, 2 * time.Second, false, CadenceCounts{[2]int{3, 4}, [2]int{3, 4}, time.Millisecond}},
			{bare, 2 * time.Second, true, CadenceCounts{[2]int{3, 4}, [2]int{}, 0}},
			{bare, 3 * time.Second, false, CadenceCounts{[2]int{3, 5}, [2]int{}, time.Second}},
			{own, 62 * time.Second, false, CadenceCounts{[2]int{1, 2}, [2]int{1, 1}, time.Minute}},
		} {
			pipe := c.Pipeline()
			counted := RecordCadence(t.Context(), pipe, step.keys, noon.Add(step.at), !step.only, w)
			if err := Exec(t.Context(), pipe); err != nil {
				t.Fatal(err)
			}
			if got, err := counted.Result(); err != nil || got != step.want {
				t.Errorf("step %d: got %+v, %v, want %+v", i, got, err, step.want)
			}
			if i == 1 {
				if n := addSession(t, c, "1", noon, 3); n != 1 {
					t.Errorf("got %d sessions after the first, want 1", n)
				}
			}
		}
		for i := range 4 {
			addSession(t, c, fmt.Sprint(i), noon.Add(time.Duration(i)*time.Minute), 3)
		}
		if n := addSession(t, c, "2", noon.Add(time.Hour), 3); n != 3 {
			t.Errorf("got %d sessions, want 3", n)
		}
		if n := addSession(t, c, "9", noon.Add(25*time.Hour), 3); n != 1 {
			t.Errorf("got %d sessions a day later, want 1", n)
		}
		left := map[string]time.Duration{}
		for _, key := range c.Keys(t.Context(), "*").Val() {
			left[key] = c.PTTL(t.Context(), key).Val()
		}
		for key, ttl := range left {
			if ttl <= 0 || ttl > 24*time.Hour || key != "{g}:sessions" && ttl > time.Minute {
				t.Errorf("got TTL %v of %s", ttl, key)
			}
		}
	}
}

func addSession(t *testing.T, c redis.UniversalClient, hash string, at time.Time, kept int) int {
	t.Helper()
	pipe := c.Pipeline()
	cmd := RecordGroupSession(t.Context(), pipe, "{g}:sessions", "{g}:own:"+hash, hash, at, kept, 24*time.Hour, time.Minute)
	if err := Exec(t.Context(), pipe); err != nil {
		t.Fatal(err)
	}
	n, err := cmd.Int()
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestRecordCadence_KeepsOnlyCountedTimes(t *testing.T) {
	c := redistest.New(t)
	keys := CadenceKeys{Group: "{g}", Cookie: "{g}:cookie", Session: "{g}:own:1"}
	var last CadenceCounts
	for i := range 100 {
		pipe := c.Pipeline()
		counted := RecordCadence(t.Context(), pipe, keys, noon.Add(time.Duration(i)*time.Millisecond), true, Windows{time.Second, time.Minute, 16})
		if err := Exec(t.Context(), pipe); err != nil {
			t.Fatal(err)
		}
		last, _ = counted.Result()
	}
	if diff := cmp.Diff(CadenceCounts{[2]int{16, 16}, [2]int{16, 16}, time.Millisecond}, last); diff != "" {
		t.Errorf("counts (- want + got):\n%s", diff)
	}
	for _, key := range []string{keys.Group, keys.Session} {
		if n := c.LLen(t.Context(), key).Val(); n != 16 {
			t.Errorf("got %d times in %s, want 16", n, key)
		}
	}
}
