package cache

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"melmastoon.ghasi.io/bff-consumer/shared/lua"
)

// stepper is one side of a race: it stops before each of its steps until it is let on.
type stepper struct {
	pending  chan string   // the step it is about to take; closed when it has ended
	proceed  chan struct{} // lets it take that step
	finished bool
}

func newStepper(act func(gate func(step string))) *stepper {
	a := &stepper{pending: make(chan string), proceed: make(chan struct{})}
	go func() {
		defer close(a.pending)
		act(func(step string) { a.pending <- step; <-a.proceed })
	}()
	a.await()
	return a
}

func (a *stepper) await() {
	_, ok := <-a.pending
	a.finished = !ok
}

// step lets it take one step, and returns when that is done.
func (a *stepper) step() {
	if !a.finished {
		a.proceed <- struct{}{}
		a.await()
	}
}

// interleavings are all ways to merge f steps of a fill with b steps of an invalidation.
func interleavings(f, b int) []string {
	if f == 0 || b == 0 {
		return []string{strings.Repeat("F", f) + strings.Repeat("B", b)}
	}
	var all []string
	for _, rest := range interleavings(f-1, b) {
		all = append(all, "F"+rest)
	}
	for _, rest := range interleavings(f, b-1) {
		all = append(all, "B"+rest)
	}
	return all
}

// TestInvalidate_NoInterleavingWithLoadKeepsOldEntry plays every one of them, for an entry that is
// absent, stale, and fresh with old rates. A fill's steps are lock, read of the truth, tags, store;
// an invalidation's are the change of the truth, then in Redis detach, delete and forget.
func TestInvalidate_NoInterleavingWithLoadKeepsOldEntry(t *testing.T) {
	addr := redisAddr(t)
	for kind, age := range map[string]time.Duration{"absent": 0, "stale": 6 * time.Minute, "rates": 2 * time.Minute} {
		clock := newClock()
		filler, buster, witness := newProcess(t, addr, clock), newProcess(t, addr, clock), newProcess(t, addr, clock)
		for _, order := range interleavings(4, 4) {
			t.Run(kind+"/"+order, func(t *testing.T) {
				filler.flush(t)
				buster.flush(t)
				var truth atomic.Value
				truth.Store("old")
				recipe := Loader{TTL: 5 * time.Minute, Load: func(ctx context.Context) (Loaded, error) {
					return loadWithRates(t, clock, truth.Load().(string))(ctx)
				}}
				if age > 0 {
					expectLoad(t, filler.Cache, recipe, "old", Miss)
					clock.advance(age)
				}
				runInterleaving(t, order, filler, buster, recipe, &truth)
				if body, state := mustLoad(t, witness.Cache, recipe); !strings.HasPrefix(body, "new") {
					t.Fatalf("afterwards: %s %q", state, body)
				}
			})
		}
	}
}

func runInterleaving(t *testing.T, order string, filler, buster *process, recipe Loader, truth *atomic.Value) {
	fill := newStepper(func(gate func(string)) {
		filler.interceptor.set(func(step string) error {
			if step != "get" && step != "extend" {
				gate(step)
			}
			return nil
		}, nil)
		gated := recipe
		gated.Load = func(ctx context.Context) (Loaded, error) { gate("fill"); return recipe.Load(ctx) }
		gated.RefreshRates = func(ctx context.Context, old *Entry) (Loaded, error) {
			gate("renew")
			return refreshRates(t, newClock())(ctx, old)
		}
		mustLoad(t, filler.Cache, gated)
	})
	bust := newStepper(func(gate func(string)) {
		buster.interceptor.set(func(step string) error { gate(step); return nil }, nil)
		gate("truth")
		truth.Store("new")
		if _, err := buster.Invalidate(t.Context(), "tag"); err != nil {
			t.Error(err)
		}
	})
	for _, side := range order {
		map[rune]*stepper{'F': fill, 'B': bust}[side].step()
	}
	for !fill.finished || !bust.finished { // steps beyond the usual: the release of a lock
		fill.step()
		bust.step()
	}
}

func TestInvalidate_RemovesOnlyTaggedEntries(t *testing.T) {
	p := newProcess(t, redisAddr(t), newClock())
	put := func(key string, tags ...string) {
		if _, _, err := p.GetOrLoad(t.Context(), key, nil, Loader{TTL: time.Minute, Load: loadBody(t, key, tags...)}); err != nil {
			t.Fatal(err)
		}
	}
	for i := range batchSize + 1 { // more than one round trip's worth
		put(fmt.Sprintf("test:both:%d", i), "tenant:a", "cell:1")
	}
	put("test:a", "tenant:a")
	put("test:b", "tenant:b")
	put("test:none")
	if n, err := p.Invalidate(t.Context(), "tenant:a", "cell:1", "cell:1", "never seen"); err != nil || n != batchSize+2 {
		t.Fatalf("removed %d, %v", n, err)
	}
	if n := p.rdb.Exists(t.Context(), "test:b", "test:none").Val(); n != 2 {
		t.Fatalf("%d of 2 others left", n)
	}
	if left := p.rdb.Keys(t.Context(), "*").Val(); len(left) != 2+1+3 { // others, their tag, three notes of the time
		t.Fatalf("left: %q", left)
	}
	if n, err := p.Invalidate(t.Context(), "tenant:a"); err != nil || n != 0 {
		t.Fatalf("again: removed %d, %v", n, err)
	}
	if n, err := p.Invalidate(t.Context()); err != nil || n != 0 {
		t.Fatalf("nothing: removed %d, %v", n, err)
	}
}

func TestInvalidate_RepeatFinishesInterruptedRun(t *testing.T) {
	for _, broken := range []string{"detach", "del", "zremrangebyscore"} {
		t.Run(broken, func(t *testing.T) {
			p := newProcess(t, redisAddr(t), newClock())
			expectLoad(t, p.Cache, Loader{Load: loadBody(t, "old", "tag")}, "old", Miss)
			p.interceptor.set(func(step string) error {
				if step == broken {
					return errCut
				}
				return nil
			}, nil)
			if _, err := p.Invalidate(t.Context(), "tag"); err == nil {
				t.Fatal("no error")
			}
			p.interceptor.set(nil, nil)
			if _, err := p.Invalidate(t.Context(), "tag"); err != nil {
				t.Fatal(err)
			}
			expectLoad(t, p.Cache, Loader{Load: loadBody(t, "new", "tag")}, "new", Miss)
			if n := p.rdb.ZCard(t.Context(), testKeys.TagPending("tag")).Val(); n != 0 {
				t.Fatalf("%d still to be deleted", n)
			}
		})
	}
}

// TestInvalidate_KeepsEntriesDetachedByAnotherCall: the first Bust has read what it will delete;
// meanwhile a newer entry is stored and the second Bust detaches it, and dies. The first must not
// forget it.
func TestInvalidate_KeepsEntriesDetachedByAnotherCall(t *testing.T) {
	addr, clock := redisAddr(t), newClock()
	first, second, filler := newProcess(t, addr, clock), newProcess(t, addr, clock), newProcess(t, addr, clock)
	expectLoad(t, filler.Cache, Loader{Load: loadBody(t, "one", "tag")}, "one", Miss)
	second.interceptor.set(func(step string) error {
		if step == "del" {
			return errCut
		}
		return nil
	}, nil)
	first.interceptor.set(func(step string) error {
		if step == "zremrangebyscore" {
			expectLoad(t, filler.Cache, Loader{Load: loadBody(t, "two", "tag")}, "two", Miss)
			if _, err := second.Invalidate(t.Context(), "tag"); err == nil {
				t.Error("the second did not die")
			}
		}
		return nil
	}, nil)
	if _, err := first.Invalidate(t.Context(), "tag"); err != nil {
		t.Fatal(err)
	}
	second.interceptor.set(nil, nil)
	if n, err := second.Invalidate(t.Context(), "tag"); err != nil || n != 1 {
		t.Fatalf("repeated: removed %d, %v", n, err)
	}
}

func TestInvalidate_TagCanBeReloadedAtOnce(t *testing.T) {
	p := newProcess(t, redisAddr(t), newClock())
	for i := range 20 { // as fast as the server's clock allows
		body := fmt.Sprint(i)
		expectLoad(t, p.Cache, Loader{Load: loadBody(t, body, "tag")}, body, Miss)
		expectLoad(t, p.Cache, Loader{Load: unexpectedLoad(t)}, body, Hit)
		if n, err := p.Invalidate(t.Context(), "tag"); err != nil || n != 1 {
			t.Fatalf("removed %d, %v", n, err)
		}
	}
}

// storeTagged stores n entries with a tag in one round trip, as n loads would.
func storeTagged(t *testing.T, p *process, tag string, n int) {
	t.Helper()
	pipe, expires := p.rdb.Pipeline(), p.now().Add(time.Minute)
	for i := range n {
		key := fmt.Sprintf("test:%d", i)
		lua.Register(t.Context(), pipe, p.tagKeys(tag), key, p.now(), expires)
		pipe.Set(t.Context(), key, "entry", time.Minute)
	}
	if err := lua.Exec(t.Context(), pipe); err != nil {
		t.Fatal(err)
	}
}

func TestInvalidate_RepeatFinishesInterruptedLargeTag(t *testing.T) {
	const entries = 2*batchSize + 7
	for _, broken := range []string{"detach", "del", "zremrangebyscore"} {
		t.Run(broken, func(t *testing.T) {
			p := newProcess(t, redisAddr(t), newClock())
			storeTagged(t, p, "tag", entries)
			seen := 0
			p.interceptor.set(func(step string) error {
				if step == broken {
					seen++
				}
				if seen == 2 { // of the second step
					return errCut
				}
				return nil
			}, nil)
			first, err := p.Invalidate(t.Context(), "tag")
			if err == nil || first < batchSize || first == entries {
				t.Fatalf("removed %d, %v", first, err)
			}
			p.interceptor.set(nil, nil)
			second, err := p.Invalidate(t.Context(), "tag")
			if err != nil || first+second != entries {
				t.Errorf("removed %d, then %d of %d: %v", first, second, entries, err)
			}
			if left := p.rdb.Keys(t.Context(), "*").Val(); len(left) != 1 { // the note of the time
				t.Errorf("left: %q", left)
			}
		})
	}
}
