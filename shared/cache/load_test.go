package cache

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"melmastoon.ghasi.io/bff-consumer/shared/testkit/redistest"
)

func TestGetOrLoad_HitForTTLThenStaleForTenMinutes(t *testing.T) {
	clock := newClock()
	p := newProcess(t, redisAddr(t), clock)
	fails := func(context.Context) (Loaded, error) { return Loaded{}, errLoad }
	expectLoad(t, p.Cache, Loader{Load: loadBody(t, "one")}, "one", Miss)

	clock.advance(time.Minute - time.Millisecond)
	expectLoad(t, p.Cache, Loader{Load: unexpectedLoad(t)}, "one", Hit)
	clock.advance(time.Millisecond)
	// the load fails, so the stale entry is the result
	expectLoad(t, p.Cache, Loader{Load: fails}, "one", Stale)
	clock.advance(10*time.Minute - time.Millisecond)
	expectLoad(t, p.Cache, Loader{Load: fails}, "one", Stale)
	clock.advance(time.Millisecond)
	if _, _, err := p.GetOrLoad(t.Context(), testKey, nil, Loader{TTL: time.Minute, Load: fails}); !errors.Is(err, errLoad) {
		t.Fatalf("after the expiry: got error %v, want %v", err, errLoad)
	}
	expectLoad(t, p.Cache, Loader{Load: loadBody(t, "two")}, "two", Miss)
}

func TestGetOrLoad_OneCallerRefreshesStaleEntry(t *testing.T) {
	clock, addr := newClock(), redisAddr(t)
	a, b := newProcess(t, addr, clock), newProcess(t, addr, clock)
	expectLoad(t, a.Cache, Loader{Load: loadBody(t, "old")}, "old", Miss)
	clock.advance(2 * time.Minute)

	began, finish := make(chan struct{}), make(chan struct{})
	refreshed := make(chan State)
	go func() {
		_, state := mustLoad(t, a.Cache, Loader{Load: func(ctx context.Context) (Loaded, error) {
			close(began)
			<-finish
			return newLoaded(t, "new"), nil
		}})
		refreshed <- state
	}()
	<-began
	for range 3 { // during the load, callers of both processes do not wait
		expectLoad(t, a.Cache, Loader{Load: unexpectedLoad(t)}, "old", Stale)
		expectLoad(t, b.Cache, Loader{Load: unexpectedLoad(t)}, "old", Stale)
	}
	close(finish)
	if state := <-refreshed; state != Miss {
		t.Fatalf("refreshing caller: got %s, want MISS", state)
	}
	expectLoad(t, b.Cache, Loader{Load: unexpectedLoad(t)}, "new", Hit)
}

func TestGetOrLoad_NegativeEntryLivesThirtySeconds(t *testing.T) {
	clock := newClock()
	p := newProcess(t, redisAddr(t), clock)
	p.jitter = func() float64 { return 1 }
	absent := func(context.Context) (Loaded, error) {
		e, err := NewEntry(404, nil, nil, nil)
		return Loaded{Entry: e}, err
	}
	status := func(load func(context.Context) (Loaded, error)) (int, State) {
		e, state, err := p.GetOrLoad(t.Context(), testKey, nil, Loader{TTL: time.Hour, Load: load})
		if err != nil {
			t.Fatal(err)
		}
		return e.Status, state
	}
	if s, state := status(absent); s != 404 || state != Miss {
		t.Fatalf("first call: got %d %s, want 404 MISS", s, state)
	}
	clock.advance(NegativeTTL - time.Millisecond)
	if s, state := status(unexpectedLoad(t)); s != 404 || state != Hit {
		t.Fatalf("within 30 s: got %d %s, want 404 HIT", s, state)
	}
	clock.advance(time.Millisecond)
	if s, state := status(loadBody(t, "here now")); s != 200 || state != Miss {
		t.Fatalf("after 30 s: got %d %s, want 200 MISS", s, state)
	}
}

func TestGetOrLoad_JitterStaysWithinTenPercent(t *testing.T) {
	clock := newClock()
	c := New(nil, testKeys, clock.now, "")
	low, high := time.Hour, time.Duration(0)
	for range 10_000 {
		f := Loaded{Entry: Entry{Status: 200}}
		c.setExpiry(&f, time.Minute)
		ttl := f.FreshUntil.Sub(clock.now())
		low, high = min(low, ttl), max(high, ttl)
		if kept := f.ExpiresAt.Sub(f.FreshUntil); kept != staleTTL {
			t.Fatalf("got %v between freshness and expiry, want %v", kept, staleTTL)
		}
	}
	if low < 54*time.Second || high > 66*time.Second || high-low < 10*time.Second {
		t.Fatalf("got TTLs from %v to %v, want 54 s to 66 s", low, high)
	}
}

func TestGetOrLoad_LoadMaySetTTLOrDisableStoring(t *testing.T) {
	clock := newClock()
	p := newProcess(t, redisAddr(t), clock)
	partial := func(body string, ttl time.Duration) func(context.Context) (Loaded, error) {
		return func(context.Context) (Loaded, error) {
			f := newLoaded(t, body)
			f.TTL = ttl
			return f, nil
		}
	}
	expectLoad(t, p.Cache, Loader{Load: partial("not stored", -1)}, "not stored", Miss)
	expectLoad(t, p.Cache, Loader{Load: partial("short", 5*time.Second)}, "short", Miss)
	clock.advance(5 * time.Second)
	expectLoad(t, p.Cache, Loader{Load: loadBody(t, "whole")}, "whole", Miss)
}

func TestGetOrLoad_UsesEnqueuedRead(t *testing.T) {
	p := newProcess(t, redisAddr(t), newClock())
	expectLoad(t, p.Cache, Loader{Load: loadBody(t, "one")}, "one", Miss)
	pipe := p.rdb.Pipeline()
	prefetched := p.Enqueue(t.Context(), pipe, testKey)
	pipe.Exec(t.Context())
	trips := redistest.Count(p.rdb)
	e, state, err := p.GetOrLoad(t.Context(), testKey, prefetched, Loader{TTL: time.Minute, Load: unexpectedLoad(t)})
	if err != nil || state != Hit || bodyText(t, e) != "one" {
		t.Fatalf("got %s, %v, want HIT one", state, err)
	}
	if n := trips.TakeCount(); n != 0 {
		t.Fatalf("got %d round trips, want 0", n)
	}
	if tenantIDs := slices.Collect(e.TenantIDs()); !slices.Equal(tenantIDs, []string{"tnt_a", "tnt_b"}) || string(e.Index) != "index" {
		t.Fatalf("got tenant ids %v, index %q", tenantIDs, e.Index)
	}
}

func TestGetOrLoad_MissTakesFourRoundTrips(t *testing.T) {
	p := newProcess(t, redisAddr(t), newClock())
	trips := redistest.Count(p.rdb)
	expectLoad(t, p.Cache, Loader{Load: loadBody(t, "one", "tag", "another", "tag")}, "one", Miss)
	if n := trips.TakeCount(); n != 4 { // read, lock, tags, store
		t.Fatalf("got %d round trips, want 4", n)
	}
}

func TestGetOrLoad_CorruptEntryIsMiss(t *testing.T) {
	p := newProcess(t, redisAddr(t), newClock())
	for name, value := range map[string]string{"empty": "", "not an entry": `{"json": true}`, "truncated": "\x01\x00\x00\xc8"} {
		t.Run(name, func(t *testing.T) {
			p.rdb.Set(t.Context(), testKey, value, 0)
			expectLoad(t, p.Cache, Loader{Load: loadBody(t, "anew")}, "anew", Miss)
			expectLoad(t, p.Cache, Loader{Load: unexpectedLoad(t)}, "anew", Hit)
		})
	}
}

func TestGetOrLoad_RedisExpiresEntry(t *testing.T) {
	clock := newClock()
	p := newProcess(t, redisAddr(t), clock)
	expectLoad(t, p.Cache, Loader{Load: loadBody(t, "one", "tag")}, "one", Miss)
	for key, most := range map[string]time.Duration{
		testKey: 11 * time.Minute, testKeys.Tag("tag"): 11 * time.Minute,
	} {
		if ttl := p.rdb.PTTL(t.Context(), key).Val(); ttl <= most-time.Minute || ttl > most {
			t.Errorf("%s: got TTL %v, want about %v", key, ttl, most)
		}
	}
	if n := p.rdb.Exists(t.Context(), testKeys.Lock(testKey)).Val(); n != 0 {
		t.Error("the lock still exists")
	}
}

func TestGetOrLoad_FailedReadStillReturnsStoredEntry(t *testing.T) {
	clock := newClock()
	p := newProcess(t, redisAddr(t), clock)
	expectLoad(t, p.Cache, Loader{Load: loadBody(t, "one")}, "one", Miss)
	p.interceptor.set(func(step string) error {
		if step == "get" {
			return errCut
		}
		return nil
	}, nil)
	expectLoad(t, p.Cache, Loader{Load: unexpectedLoad(t)}, "one", Hit)
	clock.advance(2 * time.Minute)
	expectLoad(t, p.Cache, Loader{Load: func(context.Context) (Loaded, error) { return Loaded{}, errLoad }}, "one", Stale)
	p.rdb.Set(t.Context(), testKeys.Lock(testKey), "other", 0)
	expectLoad(t, p.Cache, Loader{Load: unexpectedLoad(t)}, "one", Stale)
}

func TestGetOrLoad_CanceledCallerLoadsNothing(t *testing.T) {
	p := newProcess(t, redisAddr(t), newClock())
	ctx, leave := context.WithCancel(t.Context())
	leave()
	if _, _, err := p.GetOrLoad(ctx, testKey, nil, Loader{TTL: time.Minute, Load: unexpectedLoad(t)}); !errors.Is(err, context.Canceled) {
		t.Fatalf("got error %v, want context.Canceled", err)
	}
	waitForGoroutines(t)
}
