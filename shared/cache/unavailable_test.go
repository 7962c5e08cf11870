package cache

import (
	"context"
	"testing"
	"time"

	"melmastoon.ghasi.io/bff-consumer/shared/redisclient"
	"melmastoon.ghasi.io/bff-consumer/shared/testkit/redistest"
)

func TestGetOrLoad_WithoutRedisLoadsOncePerProcess(t *testing.T) {
	server := redistest.NewServer(t)
	p := newProcess(t, server.Addr, newClock())
	p.read(t.Context(), testKey)
	server.Stop()
	u := newBlockingLoader(t)
	results := loadConcurrently(t, p.Cache, 50, u.load)
	close(u.release)
	for range 50 {
		if a := <-results; a.err != nil || a.body != "answer" || a.state != Miss {
			t.Fatalf("got %s %q, %v, want MISS answer", a.state, a.body, a.err)
		}
	}
	if n := u.calls.Load(); n != 1 {
		t.Fatalf("got %d loads, want 1", n)
	}
	expectLoad(t, p.Cache, Loader{Load: loadBody(t, "not stored")}, "not stored", Miss)
	// so that the event is redelivered
	if _, err := p.Invalidate(t.Context(), "tag"); !redisclient.IsUnavailable(err) {
		t.Fatalf("Invalidate: got error %v, want an unavailable Redis", err)
	}
	server.Start()
	p = newProcess(t, server.Addr, newClock())
	expectLoad(t, p.Cache, Loader{Load: loadBody(t, "back")}, "back", Miss)
	expectLoad(t, p.Cache, Loader{Load: unexpectedLoad(t)}, "back", Hit)
	waitForGoroutines(t)
}

// The test cuts a process off from Redis before each step of a miss, of a reload and of a refresh
// of rates.
func TestGetOrLoad_SurvivesRedisLossAtEveryStep(t *testing.T) {
	for kind, age := range map[string]time.Duration{"absent": 0, "stale": 6 * time.Minute, "rates": 2 * time.Minute} {
		for _, lostAt := range []string{"get", "acquire", "register", "store"} {
			t.Run(kind+"/"+lostAt, func(t *testing.T) {
				t.Parallel()
				addr := ownRedisAddr(t)
				clock := newClock()
				p := newProcess(t, addr, clock)
				loader := Loader{TTL: 5 * time.Minute, Load: loadWithRates(t, clock, "list"), RefreshRates: refreshRates(t, clock)}
				if age > 0 {
					expectLoad(t, p.Cache, loader, "list", Miss)
					clock.advance(age)
				}
				cut := false
				p.interceptor.set(func(step string) error {
					if cut = cut || step == lostAt; cut {
						return errCut
					}
					return nil
				}, nil)
				body, state := "list", Miss
				if kind == "rates" && lostAt != "get" { // the refresh needs the old entry
					body, state = "list, rated", Hit
				}
				expectLoad(t, p.Cache, loader, body, state)
			})
		}
	}
}

// A hung Redis costs 200 ms for the read, 400 ms before the load and 400 ms after the load. A
// caller with little more time than that and the headroom of a flight gets the entry in time,
// whatever the step at which Redis hangs.
func TestGetOrLoad_HungRedisCostsAtMostItsBudget(t *testing.T) {
	for _, hangs := range []string{"get", "acquire", "register"} {
		t.Run(hangs, func(t *testing.T) {
			t.Parallel()
			server := redistest.NewServer(t)
			p := newProcess(t, server.Addr, newClock())
			p.interceptor.set(func(step string) error {
				if step == hangs {
					server.Hang()
				}
				return nil
			}, nil)
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
			defer cancel()
			load := func(ctx context.Context) (Loaded, error) {
				if ctx.Err() != nil {
					t.Error("the load has no time left")
				}
				return newLoaded(t, "answer", "tag"), nil
			}
			if a := <-loadAsync(t, ctx, p.Cache, load); a.err != nil || a.body != "answer" {
				t.Fatalf("got %q, %v, want answer", a.body, a.err)
			}
			waitForGoroutines(t)
		})
	}
}

func TestLease_UnreleasedLockExpiresSoon(t *testing.T) {
	clock, addr := newClock(), redisAddr(t)
	cut, healthy := newProcess(t, addr, clock), newProcess(t, addr, clock)
	cut.interceptor.set(func(step string) error {
		if step == "register" || step == "release" {
			return errCut
		}
		return nil
	}, nil)
	expectLoad(t, cut.Cache, Loader{Load: loadBody(t, "one", "tag")}, "one", Miss)
	expireLock(t, healthy)
	expectLoad(t, healthy.Cache, Loader{Load: loadBody(t, "two", "tag")}, "two", Miss)
}
