package cache

import (
	"context"
	"testing"
	"time"
)

// loadWithRates answers with rates that are good for a minute.
func loadWithRates(t testing.TB, c *clock, body string) func(context.Context) (Loaded, error) {
	return func(context.Context) (Loaded, error) {
		f := newLoaded(t, body, "tag")
		f.RatesFreshUntil = c.now().Add(time.Minute)
		return f, nil
	}
}

// refreshRates renews an entry: the same list with a word about its new rates.
func refreshRates(t testing.TB, c *clock) func(context.Context, *Entry) (Loaded, error) {
	return func(ctx context.Context, old *Entry) (Loaded, error) {
		return loadWithRates(t, c, bodyText(t, old)+", rated")(ctx)
	}
}

func unexpectedRefresh(t testing.TB) func(context.Context, *Entry) (Loaded, error) {
	return func(context.Context, *Entry) (Loaded, error) {
		t.Error("renewed again")
		return Loaded{}, errLoad
	}
}

func TestRefreshRates_EntryStaysHitForItsTTL(t *testing.T) {
	clock := newClock()
	p := newProcess(t, redisAddr(t), clock)
	recipe := Loader{TTL: 5 * time.Minute, Load: loadWithRates(t, clock, "list"), RefreshRates: unexpectedRefresh(t)}
	expectLoad(t, p.Cache, recipe, "list", Miss)
	recipe.Load = unexpectedLoad(t)
	body := "list"
	for range 4 {
		clock.advance(time.Minute - time.Millisecond)
		recipe.RefreshRates = unexpectedRefresh(t)
		expectLoad(t, p.Cache, recipe, body, Hit)
		clock.advance(time.Millisecond)
		body += ", rated"
		recipe.RefreshRates = refreshRates(t, clock)
		expectLoad(t, p.Cache, recipe, body, Hit)
	}
	clock.advance(time.Minute) // five minutes after the fill: renewing did not make the list younger
	recipe.Load, recipe.RefreshRates = loadWithRates(t, clock, "new list"), unexpectedRefresh(t)
	expectLoad(t, p.Cache, recipe, "new list", Miss)
}

func TestRefreshRates_OneCallerRefreshesOthersDoNotWait(t *testing.T) {
	clock, addr := newClock(), redisAddr(t)
	a, b := newProcess(t, addr, clock), newProcess(t, addr, clock)
	recipe := Loader{TTL: 5 * time.Minute, Load: loadWithRates(t, clock, "list"), RefreshRates: unexpectedRefresh(t)}
	expectLoad(t, a.Cache, recipe, "list", Miss)
	clock.advance(time.Minute)
	began, finish, renewed := make(chan struct{}), make(chan struct{}), make(chan string)
	go func() {
		body, _ := mustLoad(t, a.Cache, Loader{RefreshRates: func(ctx context.Context, old *Entry) (Loaded, error) {
			close(began)
			<-finish
			return refreshRates(t, clock)(ctx, old)
		}})
		renewed <- body
	}()
	<-began
	expectLoad(t, a.Cache, recipe, "list", Hit)
	expectLoad(t, b.Cache, recipe, "list", Hit)
	close(finish)
	if body := <-renewed; body != "list, rated" {
		t.Fatalf("the one who renewed got %q", body)
	}
	expectLoad(t, b.Cache, recipe, "list, rated", Hit)
}

func TestRefreshRates_FailureKeepsHit(t *testing.T) {
	clock := newClock()
	p := newProcess(t, redisAddr(t), clock)
	recipe := Loader{TTL: 5 * time.Minute, Load: loadWithRates(t, clock, "list")}
	recipe.RefreshRates = func(context.Context, *Entry) (Loaded, error) { return Loaded{}, errLoad }
	expectLoad(t, p.Cache, recipe, "list", Miss)
	clock.advance(time.Minute)
	expectLoad(t, p.Cache, recipe, "list", Hit)
	recipe.RefreshRates = refreshRates(t, clock)
	expectLoad(t, p.Cache, recipe, "list, rated", Hit)
}

func TestRefreshRates_DoesNotRestoreDeletedEntry(t *testing.T) {
	clock := newClock()
	p := newProcess(t, redisAddr(t), clock)
	recipe := Loader{TTL: 5 * time.Minute, Load: loadWithRates(t, clock, "list"), RefreshRates: unexpectedRefresh(t)}
	expectLoad(t, p.Cache, recipe, "list", Miss)
	clock.advance(time.Minute)
	seen := p.read(t.Context(), testKey)
	if _, err := p.Invalidate(t.Context(), "tag"); err != nil {
		t.Fatal(err)
	}
	if _, state, err := p.GetOrLoad(t.Context(), testKey, seen, recipe); err != nil || state != Hit {
		t.Fatalf("%s, %v", state, err)
	}
	if n := p.rdb.Exists(t.Context(), testKey, testKeys.Lock(testKey)).Val(); n != 0 {
		t.Fatal("something was put back")
	}
}
