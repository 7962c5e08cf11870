package cache

import (
	"context"
	"testing"
	"time"
)

// loadWithRates returns a load function with rates fresh for a minute.
func loadWithRates(t testing.TB, c *clock, body string) func(context.Context) (Loaded, error) {
	return func(context.Context) (Loaded, error) {
		f := newLoaded(t, body, "tag")
		f.RatesFreshUntil = c.now().Add(time.Minute)
		return f, nil
	}
}

// refreshRates returns a RefreshRates function that appends ", rated" to the body.
func refreshRates(t testing.TB, c *clock) func(context.Context, *Entry) (Loaded, error) {
	return func(ctx context.Context, old *Entry) (Loaded, error) {
		return loadWithRates(t, c, bodyText(t, old)+", rated")(ctx)
	}
}

func unexpectedRefresh(t testing.TB) func(context.Context, *Entry) (Loaded, error) {
	return func(context.Context, *Entry) (Loaded, error) {
		t.Error("unexpected refresh of the rates")
		return Loaded{}, errLoad
	}
}

func TestRefreshRates_EntryStaysHitForItsTTL(t *testing.T) {
	clock := newClock()
	p := newProcess(t, redisAddr(t), clock)
	loader := Loader{TTL: 5 * time.Minute, Load: loadWithRates(t, clock, "list"), RefreshRates: unexpectedRefresh(t)}
	expectLoad(t, p.Cache, loader, "list", Miss)
	loader.Load = unexpectedLoad(t)
	body := "list"
	for range 4 {
		clock.advance(time.Minute - time.Millisecond)
		loader.RefreshRates = unexpectedRefresh(t)
		expectLoad(t, p.Cache, loader, body, Hit)
		clock.advance(time.Millisecond)
		body += ", rated"
		loader.RefreshRates = refreshRates(t, clock)
		expectLoad(t, p.Cache, loader, body, Hit)
	}
	clock.advance(time.Minute) // five minutes after the load: refreshing rates does not extend the TTL
	loader.Load, loader.RefreshRates = loadWithRates(t, clock, "new list"), unexpectedRefresh(t)
	expectLoad(t, p.Cache, loader, "new list", Miss)
}

func TestRefreshRates_OneCallerRefreshesOthersDoNotWait(t *testing.T) {
	clock, addr := newClock(), redisAddr(t)
	a, b := newProcess(t, addr, clock), newProcess(t, addr, clock)
	loader := Loader{TTL: 5 * time.Minute, Load: loadWithRates(t, clock, "list"), RefreshRates: unexpectedRefresh(t)}
	expectLoad(t, a.Cache, loader, "list", Miss)
	clock.advance(time.Minute)
	began, finish, refreshed := make(chan struct{}), make(chan struct{}), make(chan string)
	go func() {
		body, _ := mustLoad(t, a.Cache, Loader{RefreshRates: func(ctx context.Context, old *Entry) (Loaded, error) {
			close(began)
			<-finish
			return refreshRates(t, clock)(ctx, old)
		}})
		refreshed <- body
	}()
	<-began
	expectLoad(t, a.Cache, loader, "list", Hit)
	expectLoad(t, b.Cache, loader, "list", Hit)
	close(finish)
	if body := <-refreshed; body != "list, rated" {
		t.Fatalf("refreshing caller: got %q, want %q", body, "list, rated")
	}
	expectLoad(t, b.Cache, loader, "list, rated", Hit)
}

func TestRefreshRates_FailureKeepsHit(t *testing.T) {
	clock := newClock()
	p := newProcess(t, redisAddr(t), clock)
	loader := Loader{TTL: 5 * time.Minute, Load: loadWithRates(t, clock, "list")}
	loader.RefreshRates = func(context.Context, *Entry) (Loaded, error) { return Loaded{}, errLoad }
	expectLoad(t, p.Cache, loader, "list", Miss)
	clock.advance(time.Minute)
	expectLoad(t, p.Cache, loader, "list", Hit)
	loader.RefreshRates = refreshRates(t, clock)
	expectLoad(t, p.Cache, loader, "list, rated", Hit)
}

func TestRefreshRates_DoesNotRestoreDeletedEntry(t *testing.T) {
	clock := newClock()
	p := newProcess(t, redisAddr(t), clock)
	loader := Loader{TTL: 5 * time.Minute, Load: loadWithRates(t, clock, "list"), RefreshRates: unexpectedRefresh(t)}
	expectLoad(t, p.Cache, loader, "list", Miss)
	clock.advance(time.Minute)
	prefetched := p.read(t.Context(), testKey)
	if _, err := p.Invalidate(t.Context(), "tag"); err != nil {
		t.Fatal(err)
	}
	if _, state, err := p.GetOrLoad(t.Context(), testKey, prefetched, loader); err != nil || state != Hit {
		t.Fatalf("got %s, %v, want HIT", state, err)
	}
	if n := p.rdb.Exists(t.Context(), testKey, testKeys.Lock(testKey)).Val(); n != 0 {
		t.Fatal("the refresh has restored the deleted entry or its lock")
	}
}
