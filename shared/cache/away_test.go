package cache

import (
	"context"
	"testing"
	"time"

	"melmastoon.ghasi.io/bff-consumer/shared/keyspace"
	"melmastoon.ghasi.io/bff-consumer/shared/redistest"
)

func TestWithoutRedisEachProcessFetchesOnceAndNobodySeesAnError(t *testing.T) {
	server := redistest.Server(t)
	p := newProcess(t, server.Addr, newClock())
	p.read(t.Context(), testKey)
	server.Stop()
	u := newUpstream(t)
	answers := crowd(t, p.Cache, 50, u.fill)
	close(u.finish)
	for range 50 {
		if a := <-answers; a.err != nil || a.body != "answer" || a.state != Miss {
			t.Fatalf("%s %q, %v", a.state, a.body, a.err)
		}
	}
	if n := u.calls.Load(); n != 1 {
		t.Fatalf("%d fills", n)
	}
	want(t, p.Cache, Recipe{Fill: answer(t, "read in vain")}, "read in vain", Miss)
	if _, err := p.Bust(t.Context(), "tag"); !keyspace.IsAway(err) { // an event that did nothing must come again
		t.Fatalf("bust: %v", err)
	}
	server.Start()
	p = newProcess(t, server.Addr, newClock())
	want(t, p.Cache, Recipe{Fill: answer(t, "back")}, "back", Miss)
	want(t, p.Cache, Recipe{Fill: noFill(t)}, "back", Hit)
	settled(t)
}

// TestRedisMayGoAtAnyStep cuts a process off before each step of a miss, of a refresh and of a renewal.
func TestRedisMayGoAtAnyStep(t *testing.T) {
	addr := redisAddr(t)
	for kind, age := range map[string]time.Duration{"absent": 0, "stale": 6 * time.Minute, "rates": 2 * time.Minute} {
		for _, gone := range []string{"get", "acquire", "register", "store"} {
			t.Run(kind+"/"+gone, func(t *testing.T) {
				clock := newClock()
				p := newProcess(t, addr, clock)
				p.empty(t)
				recipe := Recipe{TTL: 5 * time.Minute, Fill: rated(t, clock, "list"), Renew: rerate(t, clock)}
				if age > 0 {
					want(t, p.Cache, recipe, "list", Miss)
					clock.pass(age)
				}
				cut := false
				p.tap.set(func(step string) error {
					if cut = cut || step == gone; cut {
						return errCut
					}
					return nil
				}, nil)
				body, state := "list", Miss
				if kind == "rates" && gone != "get" { // that one was read before
					body, state = "list, rated", Hit
				}
				want(t, p.Cache, recipe, body, state)
			})
		}
	}
}

// A hung Redis costs 400 ms before the fill and 400 ms after it, so a caller with not much more than that, and the
// headroom a flight leaves, has its answer in time whatever the step at which Redis hangs.
func TestAHungRedisCostsItsBudget(t *testing.T) {
	for _, hangs := range []string{"get", "acquire", "register"} {
		t.Run(hangs, func(t *testing.T) {
			server := redistest.Server(t)
			p := newProcess(t, server.Addr, newClock())
			p.tap.set(func(step string) error {
				if step == hangs {
					server.Hang()
				}
				return nil
			}, nil)
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
			defer cancel()
			fill := func(ctx context.Context) (Filled, error) {
				if ctx.Err() != nil {
					t.Error("no time left to fill")
				}
				return filled(t, "answer", "tag"), nil
			}
			if a := <-ask(t, ctx, p.Cache, fill); a.err != nil || a.body != "answer" {
				t.Fatalf("%q, %v", a.body, a.err)
			}
			settled(t)
		})
	}
}

func TestALeaderWhoseLockCannotBeReleasedHoldsNobodyUpForLong(t *testing.T) {
	clock, addr := newClock(), redisAddr(t)
	cut, well := newProcess(t, addr, clock), newProcess(t, addr, clock)
	cut.tap.set(func(step string) error {
		if step == "register" || step == "release" {
			return errCut
		}
		return nil
	}, nil)
	want(t, cut.Cache, Recipe{Fill: answer(t, "one", "tag")}, "one", Miss)
	want(t, well.Cache, Recipe{Fill: answer(t, "two", "tag")}, "two", Miss) // when the lease has lapsed, within its own budget
}
