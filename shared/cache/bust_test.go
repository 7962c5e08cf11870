package cache

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// actor is one side of a race: it stops before each of its steps until it is let on.
type actor struct {
	at   chan string   // the step it is about to take; closed when it has ended
	on   chan struct{} // lets it take that step
	gone bool
}

func newActor(act func(gate func(step string))) *actor {
	a := &actor{at: make(chan string), on: make(chan struct{})}
	go func() {
		defer close(a.at)
		act(func(step string) { a.at <- step; <-a.on })
	}()
	a.arrive()
	return a
}

func (a *actor) arrive() {
	_, ok := <-a.at
	a.gone = !ok
}

// step lets it take one step, and returns when that is done.
func (a *actor) step() {
	if !a.gone {
		a.on <- struct{}{}
		a.arrive()
	}
}

// orders are all ways to merge f steps of a fill with b steps of an invalidation.
func orders(f, b int) []string {
	if f == 0 || b == 0 {
		return []string{strings.Repeat("F", f) + strings.Repeat("B", b)}
	}
	var all []string
	for _, rest := range orders(f-1, b) {
		all = append(all, "F"+rest)
	}
	for _, rest := range orders(f, b-1) {
		all = append(all, "B"+rest)
	}
	return all
}

// TestNoInterleavingOfAFillAndAnInvalidationLeavesTheOldAnswer plays every one of them, for an entry that is absent,
// stale, and fresh with old rates. A fill's steps are lock, read of the truth, tags, store; an invalidation's are the
// change of the truth, then in Redis detach, delete and forget.
func TestNoInterleavingOfAFillAndAnInvalidationLeavesTheOldAnswer(t *testing.T) {
	addr := redisAddr(t)
	for kind, age := range map[string]time.Duration{"absent": 0, "stale": 6 * time.Minute, "rates": 2 * time.Minute} {
		clock := newClock()
		filler, buster, witness := newProcess(t, addr, clock), newProcess(t, addr, clock), newProcess(t, addr, clock)
		for _, order := range orders(4, 4) {
			t.Run(kind+"/"+order, func(t *testing.T) {
				filler.empty(t)
				buster.empty(t)
				var truth atomic.Value
				truth.Store("old")
				recipe := Recipe{TTL: 5 * time.Minute, Fill: func(ctx context.Context) (Filled, error) {
					return rated(t, clock, truth.Load().(string))(ctx)
				}}
				if age > 0 {
					want(t, filler.Cache, recipe, "old", Miss)
					clock.pass(age)
				}
				race(t, order, filler, buster, recipe, &truth)
				if body, state := do(t, witness.Cache, recipe); !strings.HasPrefix(body, "new") {
					t.Fatalf("afterwards: %s %q", state, body)
				}
			})
		}
	}
}

func race(t *testing.T, order string, filler, buster *process, recipe Recipe, truth *atomic.Value) {
	fill := newActor(func(gate func(string)) {
		filler.tap.set(func(step string) error {
			if step != "get" && step != "extend" {
				gate(step)
			}
			return nil
		}, nil)
		gated := recipe
		gated.Fill = func(ctx context.Context) (Filled, error) { gate("fill"); return recipe.Fill(ctx) }
		gated.Renew = func(ctx context.Context, old *Entry) (Filled, error) {
			gate("renew")
			return rerate(t, newClock())(ctx, old)
		}
		do(t, filler.Cache, gated)
	})
	bust := newActor(func(gate func(string)) {
		buster.tap.set(func(step string) error { gate(step); return nil }, nil)
		gate("truth")
		truth.Store("new")
		if _, err := buster.Bust(t.Context(), "tag"); err != nil {
			t.Error(err)
		}
	})
	for _, side := range order {
		map[rune]*actor{'F': fill, 'B': bust}[side].step()
	}
	for !fill.gone || !bust.gone { // steps beyond the usual: the release of a lock
		fill.step()
		bust.step()
	}
}

func TestBustRemovesWhatCarriesTheTagAndNothingElse(t *testing.T) {
	p := newProcess(t, redisAddr(t), newClock())
	put := func(key string, tags ...string) {
		if _, _, err := p.Do(t.Context(), key, nil, Recipe{TTL: time.Minute, Fill: answer(t, key, tags...)}); err != nil {
			t.Fatal(err)
		}
	}
	for i := range batch + 1 { // more than one round trip's worth
		put(fmt.Sprintf("test:both:%d", i), "tenant:a", "cell:1")
	}
	put("test:a", "tenant:a")
	put("test:b", "tenant:b")
	put("test:none")
	if n, err := p.Bust(t.Context(), "tenant:a", "cell:1", "cell:1", "never seen"); err != nil || n != batch+2 {
		t.Fatalf("removed %d, %v", n, err)
	}
	if n := p.rdb.Exists(t.Context(), "test:b", "test:none").Val(); n != 2 {
		t.Fatalf("%d of 2 others left", n)
	}
	if left := p.rdb.Keys(t.Context(), "*").Val(); len(left) != 2+1+3 { // others, their tag, three notes of the time
		t.Fatalf("left: %q", left)
	}
	if n, err := p.Bust(t.Context(), "tenant:a"); err != nil || n != 0 {
		t.Fatalf("again: removed %d, %v", n, err)
	}
	if n, err := p.Bust(t.Context()); err != nil || n != 0 {
		t.Fatalf("nothing: removed %d, %v", n, err)
	}
}

func TestABustThatBrokeOffIsFinishedByItsRepetition(t *testing.T) {
	for _, broken := range []string{"detach", "del", "zremrangebyscore"} {
		t.Run(broken, func(t *testing.T) {
			p := newProcess(t, redisAddr(t), newClock())
			want(t, p.Cache, Recipe{Fill: answer(t, "old", "tag")}, "old", Miss)
			p.tap.set(func(step string) error {
				if step == broken {
					return errCut
				}
				return nil
			}, nil)
			if _, err := p.Bust(t.Context(), "tag"); err == nil {
				t.Fatal("no error")
			}
			p.tap.set(nil, nil)
			if _, err := p.Bust(t.Context(), "tag"); err != nil {
				t.Fatal(err)
			}
			want(t, p.Cache, Recipe{Fill: answer(t, "new", "tag")}, "new", Miss)
			if n := p.rdb.ZCard(t.Context(), testKeys.Busting("tag")).Val(); n != 0 {
				t.Fatalf("%d still to be deleted", n)
			}
		})
	}
}

// TestABustLeavesToAnotherWhatThatOneDetached: the first Bust has read what it will delete; meanwhile a newer entry is
// stored and the second Bust detaches it, and dies. The first must not forget it.
func TestABustLeavesToAnotherWhatThatOneDetached(t *testing.T) {
	addr, clock := redisAddr(t), newClock()
	first, second, filler := newProcess(t, addr, clock), newProcess(t, addr, clock), newProcess(t, addr, clock)
	want(t, filler.Cache, Recipe{Fill: answer(t, "one", "tag")}, "one", Miss)
	second.tap.set(func(step string) error {
		if step == "del" {
			return errCut
		}
		return nil
	}, nil)
	first.tap.set(func(step string) error {
		if step == "zremrangebyscore" {
			want(t, filler.Cache, Recipe{Fill: answer(t, "two", "tag")}, "two", Miss)
			if _, err := second.Bust(t.Context(), "tag"); err == nil {
				t.Error("the second did not die")
			}
		}
		return nil
	}, nil)
	if _, err := first.Bust(t.Context(), "tag"); err != nil {
		t.Fatal(err)
	}
	second.tap.set(nil, nil)
	if n, err := second.Bust(t.Context(), "tag"); err != nil || n != 1 {
		t.Fatalf("repeated: removed %d, %v", n, err)
	}
}

func TestAnInvalidatedTagCanBeFilledAgainAtOnce(t *testing.T) {
	p := newProcess(t, redisAddr(t), newClock())
	for i := range 20 { // as fast as the server's clock allows
		body := fmt.Sprint(i)
		want(t, p.Cache, Recipe{Fill: answer(t, body, "tag")}, body, Miss)
		want(t, p.Cache, Recipe{Fill: noFill(t)}, body, Hit)
		if n, err := p.Bust(t.Context(), "tag"); err != nil || n != 1 {
			t.Fatalf("removed %d, %v", n, err)
		}
	}
}

func TestALargeBustThatBrokeOffHalfwayIsFinishedByItsRepetition(t *testing.T) {
	const entries = 2*batch + 7
	for _, broken := range []string{"detach", "del", "zremrangebyscore"} {
		t.Run(broken, func(t *testing.T) {
			p := newProcess(t, redisAddr(t), newClock())
			for i := range entries {
				if _, _, err := p.Do(t.Context(), fmt.Sprintf("test:%d", i), nil, Recipe{TTL: time.Minute, Fill: answer(t, "old", "tag")}); err != nil {
					t.Fatal(err)
				}
			}
			seen := 0
			p.tap.set(func(step string) error {
				if step == broken {
					seen++
				}
				if seen == 2 { // of the second step
					return errCut
				}
				return nil
			}, nil)
			first, err := p.Bust(t.Context(), "tag")
			if err == nil || first < batch || first == entries {
				t.Fatalf("removed %d, %v", first, err)
			}
			p.tap.set(nil, nil)
			second, err := p.Bust(t.Context(), "tag")
			if err != nil || first+second != entries {
				t.Errorf("removed %d, then %d of %d: %v", first, second, entries, err)
			}
			if left := p.rdb.Keys(t.Context(), "*").Val(); len(left) != 1 { // the note of the time
				t.Errorf("left: %q", left)
			}
		})
	}
}
