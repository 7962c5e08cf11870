package cache

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"melmastoon.ghasi.io/bff-consumer/shared/redistest"
)

func TestAnAnswerIsAHitForItsTTLAndStaleForTenMinutesMore(t *testing.T) {
	clock := newClock()
	p := newProcess(t, redisAddr(t), clock)
	fails := func(context.Context) (Filled, error) { return Filled{}, errFill }
	want(t, p.Cache, Recipe{Fill: answer(t, "one")}, "one", Miss)

	clock.pass(time.Minute - time.Millisecond)
	want(t, p.Cache, Recipe{Fill: noFill(t)}, "one", Hit)
	clock.pass(time.Millisecond)
	want(t, p.Cache, Recipe{Fill: fails}, "one", Stale) // the refresh fails, what is kept serves
	clock.pass(10*time.Minute - time.Millisecond)
	want(t, p.Cache, Recipe{Fill: fails}, "one", Stale)
	clock.pass(time.Millisecond)
	if _, _, err := p.Do(t.Context(), testKey, nil, Recipe{TTL: time.Minute, Fill: fails}); !errors.Is(err, errFill) {
		t.Fatalf("past its keep: %v", err)
	}
	want(t, p.Cache, Recipe{Fill: answer(t, "two")}, "two", Miss)
}

func TestAStaleAnswerIsRefreshedByOneAndServedToTheOthersAtOnce(t *testing.T) {
	clock, addr := newClock(), redisAddr(t)
	a, b := newProcess(t, addr, clock), newProcess(t, addr, clock)
	want(t, a.Cache, Recipe{Fill: answer(t, "old")}, "old", Miss)
	clock.pass(2 * time.Minute)

	began, finish := make(chan struct{}), make(chan struct{})
	refreshed := make(chan State)
	go func() {
		_, state := do(t, a.Cache, Recipe{Fill: func(ctx context.Context) (Filled, error) {
			close(began)
			<-finish
			return filled(t, "new"), nil
		}})
		refreshed <- state
	}()
	<-began
	for range 3 { // while it works: this process and another, answered without waiting
		want(t, a.Cache, Recipe{Fill: noFill(t)}, "old", Stale)
		want(t, b.Cache, Recipe{Fill: noFill(t)}, "old", Stale)
	}
	close(finish)
	if state := <-refreshed; state != Miss {
		t.Fatalf("the refresher got %s", state)
	}
	want(t, b.Cache, Recipe{Fill: noFill(t)}, "new", Hit)
}

func TestANegativeAnswerIsKeptThirtySecondsAndNoLonger(t *testing.T) {
	clock := newClock()
	p := newProcess(t, redisAddr(t), clock)
	p.jitter = func() float64 { return 1 }
	absent := func(context.Context) (Filled, error) {
		e, err := Pack(404, nil, nil, nil)
		return Filled{Entry: e}, err
	}
	status := func(fill func(context.Context) (Filled, error)) (int, State) {
		e, state, err := p.Do(t.Context(), testKey, nil, Recipe{TTL: time.Hour, Fill: fill})
		if err != nil {
			t.Fatal(err)
		}
		return e.Status, state
	}
	if s, state := status(absent); s != 404 || state != Miss {
		t.Fatalf("first: %d %s", s, state)
	}
	clock.pass(NegativeTTL - time.Millisecond)
	if s, state := status(noFill(t)); s != 404 || state != Hit {
		t.Fatalf("within 30 s: %d %s", s, state)
	}
	clock.pass(time.Millisecond)
	if s, state := status(answer(t, "here now")); s != 200 || state != Miss {
		t.Fatalf("after 30 s: %d %s", s, state)
	}
}

func TestJitterStaysWithinATenth(t *testing.T) {
	clock := newClock()
	c := New(nil, testKeys, clock.now, "")
	low, high := time.Hour, time.Duration(0)
	for range 10_000 {
		f := Filled{Entry: Entry{Status: 200}}
		c.date(&f, time.Minute)
		ttl := f.FreshUntil.Sub(clock.now())
		low, high = min(low, ttl), max(high, ttl)
		if kept := f.KeptUntil.Sub(f.FreshUntil); kept != keepStale {
			t.Fatalf("kept %v past freshness", kept)
		}
	}
	if low < 54*time.Second || high > 66*time.Second || high-low < 10*time.Second {
		t.Fatalf("between %v and %v", low, high)
	}
}

func TestAFillMayNameItsOwnLifeOrNone(t *testing.T) {
	clock := newClock()
	p := newProcess(t, redisAddr(t), clock)
	partial := func(body string, ttl time.Duration) func(context.Context) (Filled, error) {
		return func(context.Context) (Filled, error) {
			f := filled(t, body)
			f.TTL = ttl
			return f, nil
		}
	}
	want(t, p.Cache, Recipe{Fill: partial("not stored", -1)}, "not stored", Miss)
	want(t, p.Cache, Recipe{Fill: partial("short", 5*time.Second)}, "short", Miss)
	clock.pass(5 * time.Second)
	want(t, p.Cache, Recipe{Fill: answer(t, "whole")}, "whole", Miss)
}

func TestWhatWasPeekedIsNotReadAgain(t *testing.T) {
	p := newProcess(t, redisAddr(t), newClock())
	want(t, p.Cache, Recipe{Fill: answer(t, "one")}, "one", Miss)
	pipe := p.rdb.Pipeline()
	seen := p.Peek(t.Context(), pipe, testKey)
	pipe.Exec(t.Context())
	trips := redistest.Count(p.rdb)
	e, state, err := p.Do(t.Context(), testKey, seen, Recipe{TTL: time.Minute, Fill: noFill(t)})
	if err != nil || state != Hit || text(t, e) != "one" {
		t.Fatalf("%v %s", err, state)
	}
	if n := trips.Take(); n != 0 {
		t.Fatalf("%d round trips", n)
	}
	if owners := slices.Collect(e.Owners()); !slices.Equal(owners, []string{"tnt_a", "tnt_b"}) || string(e.Index) != "index" {
		t.Fatalf("owners %v, index %q", owners, e.Index)
	}
}

func TestAMissTakesFourRoundTrips(t *testing.T) {
	p := newProcess(t, redisAddr(t), newClock())
	trips := redistest.Count(p.rdb)
	want(t, p.Cache, Recipe{Fill: answer(t, "one", "tag", "another", "tag")}, "one", Miss)
	if n := trips.Take(); n != 4 { // read, lock, tags, store
		t.Fatalf("%d round trips", n)
	}
}

func TestAChangedEntryIsAMiss(t *testing.T) {
	p := newProcess(t, redisAddr(t), newClock())
	for name, value := range map[string]string{"empty": "", "foreign": `{"json": true}`, "cut": "\x01\x00\x00\xc8"} {
		t.Run(name, func(t *testing.T) {
			p.rdb.Set(t.Context(), testKey, value, 0)
			want(t, p.Cache, Recipe{Fill: answer(t, "anew")}, "anew", Miss)
			want(t, p.Cache, Recipe{Fill: noFill(t)}, "anew", Hit)
		})
	}
}

func TestRedisThrowsAwayWhatIsNoLongerKept(t *testing.T) {
	clock := newClock()
	p := newProcess(t, redisAddr(t), clock)
	want(t, p.Cache, Recipe{Fill: answer(t, "one", "tag")}, "one", Miss)
	for key, most := range map[string]time.Duration{
		testKey: 11 * time.Minute, testKeys.Tag("tag"): 11 * time.Minute,
	} {
		if ttl := p.rdb.PTTL(t.Context(), key).Val(); ttl <= most-time.Minute || ttl > most {
			t.Errorf("%s expires in %v", key, ttl)
		}
	}
	if n := p.rdb.Exists(t.Context(), testKeys.Lock(testKey)).Val(); n != 0 {
		t.Error("the lock is still there")
	}
}

func TestACallerWhoseReadFailedStillGetsWhatIsKept(t *testing.T) {
	clock := newClock()
	p := newProcess(t, redisAddr(t), clock)
	want(t, p.Cache, Recipe{Fill: answer(t, "one")}, "one", Miss)
	p.tap.set(func(step string) error {
		if step == "get" {
			return errCut
		}
		return nil
	}, nil)
	want(t, p.Cache, Recipe{Fill: noFill(t)}, "one", Hit)
	clock.pass(2 * time.Minute)
	want(t, p.Cache, Recipe{Fill: func(context.Context) (Filled, error) { return Filled{}, errFill }}, "one", Stale)
	p.rdb.Set(t.Context(), testKeys.Lock(testKey), "somebody else", 0)
	want(t, p.Cache, Recipe{Fill: noFill(t)}, "one", Stale)
}

func TestNothingIsFetchedForACallerWhoIsGone(t *testing.T) {
	p := newProcess(t, redisAddr(t), newClock())
	ctx, leave := context.WithCancel(t.Context())
	leave()
	if _, _, err := p.Do(ctx, testKey, nil, Recipe{TTL: time.Minute, Fill: noFill(t)}); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	settled(t)
}
