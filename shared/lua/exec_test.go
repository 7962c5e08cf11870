package lua

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"melmastoon.ghasi.io/bff-consumer/shared/testkit/redistest"
)

func TestExec_OneRoundTripPlusOneForMissingScripts(t *testing.T) {
	c := redistest.New(t)
	ctx, now := t.Context(), time.Now()
	c.Set(ctx, "plain", "value", 0)
	c.Set(ctx, "{b}:busted", "7", 0)
	trips := redistest.Count(c)
	for _, want := range []int{2, 1} {
		pipe := c.Pipeline()
		first := Register(ctx, pipe, TagKeys{"{a}", "{a}:busted", ""}, "e", now, now.Add(time.Minute))
		plain, absent := pipe.Get(ctx, "plain"), pipe.Get(ctx, "absent")
		second := Register(ctx, pipe, TagKeys{"{b}", "{b}:busted", ""}, "e", now, now.Add(time.Minute))
		if err := Exec(ctx, pipe); err != nil {
			t.Fatal(err)
		}
		a, errA := first.Int64()
		b, errB := second.Int64()
		if errA != nil || errB != nil || a != 0 || b != 7 {
			t.Errorf("scripts: got %d, %v and %d, %v, want 0 and 7", a, errA, b, errB)
		}
		if plain.Val() != "value" || !errors.Is(absent.Err(), redis.Nil) {
			t.Errorf("commands: got %q, %v, want value and redis.Nil", plain.Val(), absent.Err())
		}
		if n := trips.TakeCount(); n != want {
			t.Errorf("got %d round trips, want %d", n, want)
		}
	}
}

func TestExec_ReturnsFirstRealError(t *testing.T) {
	c := redistest.New(t)
	ctx, now := t.Context(), time.Now()
	c.Set(ctx, "{a}", "not a sorted set", 0)
	pipe := c.Pipeline()
	pipe.Get(ctx, "absent")
	bad := Register(ctx, pipe, TagKeys{"{a}", "{a}:busted", ""}, "e", now, now.Add(time.Minute))
	good := Register(ctx, pipe, TagKeys{"{b}", "{b}:busted", ""}, "e", now, now.Add(time.Minute))
	err := Exec(ctx, pipe)
	if err == nil || !strings.Contains(err.Error(), "WRONGTYPE") || bad.Err() == nil || good.Err() != nil {
		t.Errorf("got %v (commands %v, %v), want WRONGTYPE only for the first script", err, bad.Err(), good.Err())
	}
	if err := Exec(ctx, c.Pipeline()); err != nil {
		t.Errorf("empty pipeline: got %v, want nil", err)
	}
}

func TestRegister_TagLivesAsLongAsLongestEntry(t *testing.T) {
	c := redistest.New(t)
	ctx, now := t.Context(), time.Now()
	tag := TagKeys{"{t}", "{t}:busted", "{t}:busting"}
	register := func(entry string, at time.Time, life time.Duration) {
		pipe := c.Pipeline()
		Register(ctx, pipe, tag, entry, at, at.Add(life))
		if err := Exec(ctx, pipe); err != nil {
			t.Fatal(err)
		}
	}
	register("long", now, time.Hour)
	register("short", now, time.Minute)
	if ttl := c.PTTL(ctx, tag.Entries).Val(); ttl < 59*time.Minute {
		t.Errorf("got TTL %v after a shorter entry, want at least 59m", ttl)
	}
	register("long", now, time.Minute) // a shorter replacement, which may not be stored in the end
	register("new", now.Add(2*time.Minute), time.Minute)
	pipe := c.Pipeline()
	detached := Detach(ctx, pipe, tag, time.Minute, time.Hour, 9)
	if err := Exec(ctx, pipe); err != nil {
		t.Fatal(err)
	}
	taken, err := detached.Result()
	if got := strings.Join(taken.Entries, " "); err != nil || got != "long new" { // "short" has expired
		t.Errorf("got %q, %v, want %q", got, err, "long new")
	}
}

func TestDetach_InvalidationTimesAreUnique(t *testing.T) {
	c := redistest.New(t)
	ctx := t.Context()
	tag := TagKeys{"{t}", "{t}:busted", "{t}:busting"}
	c.Set(ctx, tag.InvalidatedAt, "9000000000000000", 0) // a server whose clock was set back
	for want := int64(9000000000000001); want < 9000000000000004; want++ {
		pipe := c.Pipeline()
		detached := Detach(ctx, pipe, tag, time.Minute, time.Hour, 9)
		Exec(ctx, pipe)
		if taken, err := detached.Result(); err != nil || taken.ServerTime != want {
			t.Fatalf("got %d, %v, want %d", taken.ServerTime, err, want)
		}
	}
}

func TestDetach_TakesLargeTagInSteps(t *testing.T) {
	c := redistest.New(t)
	ctx := t.Context()
	tag := TagKeys{"{t}", "{t}:busted", "{t}:busting"}
	fill := func(name string, n int) {
		for i := range n {
			c.ZAdd(ctx, tag.Entries, redis.Z{Score: 9e15, Member: fmt.Sprint(name, i)})
		}
	}
	step := func() DetachResult {
		pipe := c.Pipeline()
		detached := Detach(ctx, pipe, tag, time.Minute, time.Hour, 2)
		Exec(ctx, pipe)
		taken, err := detached.Result()
		if err != nil {
			t.Fatal(err)
		}
		return taken
	}
	forget := func(at int64) { c.ZRemRangeByScore(ctx, tag.Pending, "-inf", fmt.Sprint(at)) }
	fill("a", 5)
	first := step()
	again := step() // the first batch was not finished
	if !first.More || !again.More || len(first.Entries) != 2 || !slices.Equal(first.Entries, again.Entries) || first.ServerTime != again.ServerTime {
		t.Errorf("unfinished batch: got %+v, then %+v, want the same 2 entries", first, again)
	}
	forget(again.ServerTime)
	second := step()
	forget(second.ServerTime)
	third := step()
	if !second.More || third.More || second.ServerTime <= first.ServerTime || len(third.Entries) != 1 {
		t.Errorf("got %+v, then %+v, want later batches with 2 and 1 entries", second, third)
	}
	fill("b", 1) // stored before the end of the last batch
	if last := step(); !last.More || !slices.Equal(last.Entries, third.Entries) {
		t.Errorf("got %+v, want the unfinished batch %+v with more", last, third)
	}
	forget(third.ServerTime)
	if last := step(); last.More || !slices.Equal(last.Entries, []string{"b0"}) {
		t.Errorf("got %+v, want the entry b0", last)
	}
	c.ZRemRangeByScore(ctx, tag.Pending, "-inf", "+inf")
	if last := step(); last.More || last.Entries != nil || last.ServerTime <= third.ServerTime {
		t.Errorf("empty tag: got %+v, want no entries and a later time", last)
	}
}
