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
			t.Errorf("scripts: %d %v, %d %v", a, errA, b, errB)
		}
		if plain.Val() != "value" || !errors.Is(absent.Err(), redis.Nil) {
			t.Errorf("commands: %q, %v", plain.Val(), absent.Err())
		}
		if n := trips.TakeCount(); n != want {
			t.Errorf("%d round trips, want %d", n, want)
		}
	}
}

func TestExec_ReturnsFirstRealError(t *testing.T) {
	c := redistest.New(t)
	ctx, now := t.Context(), time.Now()
	c.Set(ctx, "{a}", "no sorted set", 0)
	pipe := c.Pipeline()
	pipe.Get(ctx, "absent")
	bad := Register(ctx, pipe, TagKeys{"{a}", "{a}:busted", ""}, "e", now, now.Add(time.Minute))
	good := Register(ctx, pipe, TagKeys{"{b}", "{b}:busted", ""}, "e", now, now.Add(time.Minute))
	err := Exec(ctx, pipe)
	if err == nil || !strings.Contains(err.Error(), "WRONGTYPE") || bad.Err() == nil || good.Err() != nil {
		t.Errorf("%v; %v, %v", err, bad.Err(), good.Err())
	}
	if err := Exec(ctx, c.Pipeline()); err != nil {
		t.Errorf("an empty pipeline: %v", err)
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
		t.Errorf("the short one cut the life to %v", ttl)
	}
	register("long", now, time.Minute) // a shorter successor, which may yet be refused
	register("new", now.Add(2*time.Minute), time.Minute)
	pipe := c.Pipeline()
	detached := Detach(ctx, pipe, tag, time.Minute, time.Hour, 9)
	if err := Exec(ctx, pipe); err != nil {
		t.Fatal(err)
	}
	taken, err := detached.Result()
	if got := strings.Join(taken.Entries, " "); err != nil || got != "long new" { // "short" is over
		t.Errorf("%q, %v", got, err)
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
			t.Fatalf("%d, %v", taken.ServerTime, err)
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
	again := step() // the first step was left unfinished
	if !first.More || !again.More || len(first.Entries) != 2 || !slices.Equal(first.Entries, again.Entries) || first.ServerTime != again.ServerTime {
		t.Errorf("%+v, then %+v", first, again)
	}
	forget(again.ServerTime)
	second := step()
	forget(second.ServerTime)
	third := step()
	if !second.More || third.More || second.ServerTime <= first.ServerTime || len(third.Entries) != 1 {
		t.Errorf("%+v, then %+v", second, third)
	}
	fill("b", 1) // stored anew before the last step is finished
	if last := step(); !last.More || !slices.Equal(last.Entries, third.Entries) {
		t.Errorf("%+v after %+v", last, third)
	}
	forget(third.ServerTime)
	if last := step(); last.More || !slices.Equal(last.Entries, []string{"b0"}) {
		t.Errorf("%+v", last)
	}
	c.ZRemRangeByScore(ctx, tag.Pending, "-inf", "+inf")
	if last := step(); last.More || last.Entries != nil || last.ServerTime <= third.ServerTime {
		t.Errorf("of nothing: %+v", last)
	}
}
