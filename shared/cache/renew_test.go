package cache

import (
	"context"
	"testing"
	"time"
)

// rated answers with rates that are good for a minute.
func rated(t testing.TB, c *clock, body string) func(context.Context) (Filled, error) {
	return func(context.Context) (Filled, error) {
		f := filled(t, body, "tag")
		f.RatesUntil = c.now().Add(time.Minute)
		return f, nil
	}
}

// rerate renews an entry: the same list with a word about its new rates.
func rerate(t testing.TB, c *clock) func(context.Context, *Entry) (Filled, error) {
	return func(ctx context.Context, old *Entry) (Filled, error) { return rated(t, c, text(t, old)+", rated")(ctx) }
}

func noRenew(t testing.TB) func(context.Context, *Entry) (Filled, error) {
	return func(context.Context, *Entry) (Filled, error) {
		t.Error("renewed again")
		return Filled{}, errFill
	}
}

func TestAListStaysAHitForItsTTLWhileItsRatesAreRenewed(t *testing.T) {
	clock := newClock()
	p := newProcess(t, redisAddr(t), clock)
	recipe := Recipe{TTL: 5 * time.Minute, Fill: rated(t, clock, "list"), Renew: noRenew(t)}
	want(t, p.Cache, recipe, "list", Miss)
	recipe.Fill = noFill(t)
	body := "list"
	for range 4 {
		clock.pass(time.Minute - time.Millisecond)
		recipe.Renew = noRenew(t)
		want(t, p.Cache, recipe, body, Hit)
		clock.pass(time.Millisecond)
		body += ", rated"
		recipe.Renew = rerate(t, clock)
		want(t, p.Cache, recipe, body, Hit)
	}
	clock.pass(time.Minute) // five minutes after the fill: renewing did not make the list younger
	recipe.Fill, recipe.Renew = rated(t, clock, "new list"), noRenew(t)
	want(t, p.Cache, recipe, "new list", Miss)
}

func TestOneRenewsAndTheOthersGetTheEntryAtOnce(t *testing.T) {
	clock, addr := newClock(), redisAddr(t)
	a, b := newProcess(t, addr, clock), newProcess(t, addr, clock)
	recipe := Recipe{TTL: 5 * time.Minute, Fill: rated(t, clock, "list"), Renew: noRenew(t)}
	want(t, a.Cache, recipe, "list", Miss)
	clock.pass(time.Minute)
	began, finish, renewed := make(chan struct{}), make(chan struct{}), make(chan string)
	go func() {
		body, _ := do(t, a.Cache, Recipe{Renew: func(ctx context.Context, old *Entry) (Filled, error) {
			close(began)
			<-finish
			return rerate(t, clock)(ctx, old)
		}})
		renewed <- body
	}()
	<-began
	want(t, a.Cache, recipe, "list", Hit)
	want(t, b.Cache, recipe, "list", Hit)
	close(finish)
	if body := <-renewed; body != "list, rated" {
		t.Fatalf("the one who renewed got %q", body)
	}
	want(t, b.Cache, recipe, "list, rated", Hit)
}

func TestAFailedRenewalLeavesTheEntryAHit(t *testing.T) {
	clock := newClock()
	p := newProcess(t, redisAddr(t), clock)
	recipe := Recipe{TTL: 5 * time.Minute, Fill: rated(t, clock, "list")}
	recipe.Renew = func(context.Context, *Entry) (Filled, error) { return Filled{}, errFill }
	want(t, p.Cache, recipe, "list", Miss)
	clock.pass(time.Minute)
	want(t, p.Cache, recipe, "list", Hit)
	recipe.Renew = rerate(t, clock)
	want(t, p.Cache, recipe, "list, rated", Hit)
}

func TestAnEntryGoneSinceItWasReadIsNotPutBackByRenewing(t *testing.T) {
	clock := newClock()
	p := newProcess(t, redisAddr(t), clock)
	recipe := Recipe{TTL: 5 * time.Minute, Fill: rated(t, clock, "list"), Renew: noRenew(t)}
	want(t, p.Cache, recipe, "list", Miss)
	clock.pass(time.Minute)
	seen := p.read(t.Context(), testKey)
	if _, err := p.Bust(t.Context(), "tag"); err != nil {
		t.Fatal(err)
	}
	if _, state, err := p.Do(t.Context(), testKey, seen, recipe); err != nil || state != Hit {
		t.Fatalf("%s, %v", state, err)
	}
	if n := p.rdb.Exists(t.Context(), testKey, testKeys.Lock(testKey)).Val(); n != 0 {
		t.Fatal("something was put back")
	}
}
