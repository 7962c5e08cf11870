package cache

import (
	"context"
	"sync/atomic"
	"testing"
	"time"
)

const partKey = "test:bff-consumer:cache:property:p"

// loadFromPart is a Fill of an answer that is made of the part.
func loadFromPart(t testing.TB, c *Cache, part func(context.Context) (Loaded, error)) func(context.Context) (Loaded, error) {
	return func(ctx context.Context) (Loaded, error) {
		e, _, err := c.GetOrLoad(ctx, partKey, nil, Loader{TTL: time.Minute, Load: part})
		if err != nil {
			return Loaded{}, err
		}
		whole := newLoaded(t, "made of "+bodyText(t, e), "tag", "another")
		whole.DependsOn = []Dependency{e.Dependency("tag")}
		return whole, nil
	}
}

func TestDependsOn_CompositeEntryIsStored(t *testing.T) {
	p := newProcess(t, redisAddr(t), newClock())
	if _, err := p.Invalidate(t.Context(), "tag", "another"); err != nil { // before both: forbids nothing
		t.Fatal(err)
	}
	expectLoad(t, p.Cache, Loader{Load: loadFromPart(t, p.Cache, loadBody(t, "part", "tag"))}, "made of part", Miss)
	expectLoad(t, p.Cache, Loader{Load: unexpectedLoad(t)}, "made of part", Hit)
	p.rdb.Del(t.Context(), testKey)
	if _, err := p.Invalidate(t.Context(), "another"); err != nil { // not the part's tag, and the part is older
		t.Fatal(err)
	}
	expectLoad(t, p.Cache, Loader{Load: loadFromPart(t, p.Cache, unexpectedLoad(t))}, "made of part", Miss)
	expectLoad(t, p.Cache, Loader{Load: unexpectedLoad(t)}, "made of part", Hit)
}

// TestDependsOn_PartOlderThanInvalidationPreventsStore: the part's own fill is under way when the
// invalidation comes, and the answer joins it.
func TestDependsOn_PartOlderThanInvalidationPreventsStore(t *testing.T) {
	p := newProcess(t, redisAddr(t), newClock())
	var truth atomic.Value
	truth.Store("old")
	began, finish := make(chan struct{}), make(chan struct{})
	part := func(ctx context.Context) (Loaded, error) {
		read := truth.Load().(string)
		close(began)
		<-finish
		return newLoaded(t, read, "tag"), nil
	}
	alone := make(chan struct{})
	go func() {
		defer close(alone)
		if _, _, err := p.GetOrLoad(t.Context(), partKey, nil, Loader{TTL: time.Minute, Load: part}); err != nil {
			t.Error(err)
		}
	}()
	<-began
	truth.Store("new")
	if _, err := p.Invalidate(t.Context(), "tag"); err != nil {
		t.Fatal(err)
	}
	fresh := func(context.Context) (Loaded, error) { return newLoaded(t, truth.Load().(string), "tag"), nil }
	joining := stepReached(p, "get", 2) // the answer's own, and the part's
	whole := loadAsync(t, t.Context(), p.Cache, loadFromPart(t, p.Cache, fresh))
	<-joining
	close(finish)
	<-alone
	<-whole // old or new, as its fill joined the part's or came after it
	p.interceptor.set(nil, nil)
	waitForGoroutines(t)
	if body, state := mustLoad(t, p.Cache, Loader{Load: loadFromPart(t, p.Cache, fresh)}); body != "made of new" {
		t.Fatalf("afterwards: %s %q", state, body)
	}
}

// TestDependsOn_PartBeingDeletedPreventsStore: an answer is made while the invalidation has noted
// its time but not yet deleted the part.
func TestDependsOn_PartBeingDeletedPreventsStore(t *testing.T) {
	addr, clock := redisAddr(t), newClock()
	p, buster := newProcess(t, addr, clock), newProcess(t, addr, clock)
	if _, _, err := p.GetOrLoad(t.Context(), partKey, nil, Loader{TTL: time.Minute, Load: loadBody(t, "old", "tag")}); err != nil {
		t.Fatal(err)
	}
	buster.interceptor.set(func(step string) error {
		if step == "del" {
			expectLoad(t, p.Cache, Loader{Load: loadFromPart(t, p.Cache, unexpectedLoad(t))}, "made of old", Miss)
		}
		return nil
	}, nil)
	if n, err := buster.Invalidate(t.Context(), "tag"); err != nil || n != 1 {
		t.Fatalf("removed %d, %v", n, err)
	}
	expectLoad(t, p.Cache, Loader{Load: loadFromPart(t, p.Cache, loadBody(t, "new", "tag"))}, "made of new", Miss)
}
