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

// stepper is a side of a race. It stops before each step until step is called.
type stepper struct {
	pending  chan string   // the next step; closed at the end
	proceed  chan struct{} // starts the next step
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

// step runs a single step and returns after the step.
func (a *stepper) step() {
	if !a.finished {
		a.proceed <- struct{}{}
		a.await()
	}
}

// interleavings returns all orders of l steps of a load and i steps of an invalidation.
func interleavings(l, i int) []string {
	if l == 0 || i == 0 {
		return []string{strings.Repeat("L", l) + strings.Repeat("I", i)}
	}
	var all []string
	for _, rest := range interleavings(l-1, i) {
		all = append(all, "L"+rest)
	}
	for _, rest := range interleavings(l, i-1) {
		all = append(all, "I"+rest)
	}
	return all
}

// The test plays all interleavings, for an entry that is absent, stale, or fresh with old rates.
// The steps of a load are lock, read of the source, tags, store. The steps of an invalidation are
// the change of the source, then detach, delete and forget in Redis.
func TestInvalidate_NoInterleavingWithLoadKeepsOldEntry(t *testing.T) {
	addr := redisAddr(t)
	for kind, age := range map[string]time.Duration{"absent": 0, "stale": 6 * time.Minute, "rates": 2 * time.Minute} {
		clock := newClock()
		loading, invalidating, observer := newProcess(t, addr, clock), newProcess(t, addr, clock), newProcess(t, addr, clock)
		for _, order := range interleavings(4, 4) {
			t.Run(kind+"/"+order, func(t *testing.T) {
				loading.flush(t)
				invalidating.flush(t)
				var source atomic.Value
				source.Store("old")
				loader := Loader{TTL: 5 * time.Minute, Load: func(ctx context.Context) (Loaded, error) {
					return loadWithRates(t, clock, source.Load().(string))(ctx)
				}}
				if age > 0 {
					expectLoad(t, loading.Cache, loader, "old", Miss)
					clock.advance(age)
				}
				runInterleaving(t, order, loading, invalidating, loader, &source)
				if body, state := mustLoad(t, observer.Cache, loader); !strings.HasPrefix(body, "new") {
					t.Fatalf("after the invalidation: got %s %q, want a body with prefix new", state, body)
				}
			})
		}
	}
}

func runInterleaving(t *testing.T, order string, loading, invalidating *process, loader Loader, source *atomic.Value) {
	load := newStepper(func(gate func(string)) {
		loading.interceptor.set(func(step string) error {
			if step != "get" && step != "extend" {
				gate(step)
			}
			return nil
		}, nil)
		gated := loader
		gated.Load = func(ctx context.Context) (Loaded, error) { gate("load"); return loader.Load(ctx) }
		gated.RefreshRates = func(ctx context.Context, old *Entry) (Loaded, error) {
			gate("refresh rates")
			return refreshRates(t, newClock())(ctx, old)
		}
		mustLoad(t, loading.Cache, gated)
	})
	invalidation := newStepper(func(gate func(string)) {
		invalidating.interceptor.set(func(step string) error { gate(step); return nil }, nil)
		gate("source")
		source.Store("new")
		if _, err := invalidating.Invalidate(t.Context(), "tag"); err != nil {
			t.Error(err)
		}
	})
	for _, side := range order {
		map[rune]*stepper{'L': load, 'I': invalidation}[side].step()
	}
	for !load.finished || !invalidation.finished { // additional steps, such as the release of a lock
		load.step()
		invalidation.step()
	}
}

func TestInvalidate_RemovesOnlyTaggedEntries(t *testing.T) {
	p := newProcess(t, redisAddr(t), newClock())
	put := func(key string, tags ...string) {
		if _, _, err := p.GetOrLoad(t.Context(), key, nil, Loader{TTL: time.Minute, Load: loadBody(t, key, tags...)}); err != nil {
			t.Fatal(err)
		}
	}
	for i := range batchSize + 1 { // more than a batch
		put(fmt.Sprintf("test:both:%d", i), "tenant:a", "cell:1")
	}
	put("test:a", "tenant:a")
	put("test:b", "tenant:b")
	put("test:none")
	if n, err := p.Invalidate(t.Context(), "tenant:a", "cell:1", "cell:1", "never seen"); err != nil || n != batchSize+2 {
		t.Fatalf("got %d entries removed, %v", n, err)
	}
	if n := p.rdb.Exists(t.Context(), "test:b", "test:none").Val(); n != 2 {
		t.Fatalf("got %d untagged entries, want 2", n)
	}
	// other entries, a tag, three invalidation times
	if left := p.rdb.Keys(t.Context(), "*").Val(); len(left) != 2+1+3 {
		t.Fatalf("got keys %q, want 6", left)
	}
	if n, err := p.Invalidate(t.Context(), "tenant:a"); err != nil || n != 0 {
		t.Fatalf("second call: got %d entries removed, %v, want 0", n, err)
	}
	if n, err := p.Invalidate(t.Context()); err != nil || n != 0 {
		t.Fatalf("without tags: got %d entries removed, %v, want 0", n, err)
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
				t.Fatal("got no error from an interrupted invalidation")
			}
			p.interceptor.set(nil, nil)
			if _, err := p.Invalidate(t.Context(), "tag"); err != nil {
				t.Fatal(err)
			}
			expectLoad(t, p.Cache, Loader{Load: loadBody(t, "new", "tag")}, "new", Miss)
			if n := p.rdb.ZCard(t.Context(), testKeys.TagPending("tag")).Val(); n != 0 {
				t.Fatalf("got %d pending entries, want 0", n)
			}
		})
	}
}

// The first call has read the entries to delete. Then a newer entry is stored, and the second call
// detaches the newer entry and dies. The first call must not forget the newer entry.
func TestInvalidate_KeepsEntriesDetachedByAnotherCall(t *testing.T) {
	addr, clock := redisAddr(t), newClock()
	first, second, loading := newProcess(t, addr, clock), newProcess(t, addr, clock), newProcess(t, addr, clock)
	expectLoad(t, loading.Cache, Loader{Load: loadBody(t, "one", "tag")}, "one", Miss)
	second.interceptor.set(func(step string) error {
		if step == "del" {
			return errCut
		}
		return nil
	}, nil)
	first.interceptor.set(func(step string) error {
		if step == "zremrangebyscore" {
			expectLoad(t, loading.Cache, Loader{Load: loadBody(t, "two", "tag")}, "two", Miss)
			if _, err := second.Invalidate(t.Context(), "tag"); err == nil {
				t.Error("got no error from the interrupted second call")
			}
		}
		return nil
	}, nil)
	if _, err := first.Invalidate(t.Context(), "tag"); err != nil {
		t.Fatal(err)
	}
	second.interceptor.set(nil, nil)
	if n, err := second.Invalidate(t.Context(), "tag"); err != nil || n != 1 {
		t.Fatalf("repeated second call: got %d entries removed, %v, want 1", n, err)
	}
}

func TestInvalidate_TagCanBeReloadedAtOnce(t *testing.T) {
	p := newProcess(t, redisAddr(t), newClock())
	for i := range 20 { // faster than the resolution of the server's clock
		body := fmt.Sprint(i)
		expectLoad(t, p.Cache, Loader{Load: loadBody(t, body, "tag")}, body, Miss)
		expectLoad(t, p.Cache, Loader{Load: unexpectedLoad(t)}, body, Hit)
		if n, err := p.Invalidate(t.Context(), "tag"); err != nil || n != 1 {
			t.Fatalf("got %d entries removed, %v", n, err)
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
				if seen == 2 { // in the second batch
					return errCut
				}
				return nil
			}, nil)
			first, err := p.Invalidate(t.Context(), "tag")
			if err == nil || first < batchSize || first == entries {
				t.Fatalf("interrupted call: got %d entries removed, %v", first, err)
			}
			p.interceptor.set(nil, nil)
			second, err := p.Invalidate(t.Context(), "tag")
			if err != nil || first+second != entries {
				t.Errorf("got %d, then %d entries removed, %v, want %d in all", first, second, err, entries)
			}
			if left := p.rdb.Keys(t.Context(), "*").Val(); len(left) != 1 { // the invalidation time
				t.Errorf("got keys %q, want 1", left)
			}
		})
	}
}
