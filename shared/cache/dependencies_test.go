package cache

import (
	"context"
	"sync/atomic"
	"testing"
	"time"
)

const partKey = "test:bff-consumer:cache:property:p"

// loadFromPart returns the load function of a composite entry that depends on the part.
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
	// earlier than both loads: no effect
	if _, err := p.Invalidate(t.Context(), "tag", "another"); err != nil {
		t.Fatal(err)
	}
	expectLoad(t, p.Cache, Loader{Load: loadFromPart(t, p.Cache, loadBody(t, "part", "tag"))}, "made of part", Miss)
	expectLoad(t, p.Cache, Loader{Load: unexpectedLoad(t)}, "made of part", Hit)
	p.rdb.Del(t.Context(), testKey)
	if _, err := p.Invalidate(t.Context(), "another"); err != nil { // not a tag of the part, which is older
		t.Fatal(err)
	}
	expectLoad(t, p.Cache, Loader{Load: loadFromPart(t, p.Cache, unexpectedLoad(t))}, "made of part", Miss)
	expectLoad(t, p.Cache, Loader{Load: unexpectedLoad(t)}, "made of part", Hit)
}

// The load of the part is in progress during the invalidation, and the composite load joins the
// load of the part.
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
	joining := stepReached(p, "get", 2) // of the composite entry, and of the part
	whole := loadAsync(t, t.Context(), p.Cache, loadFromPart(t, p.Cache, fresh))
	<-joining
	close(finish)
	<-alone
	<-whole // old or new: the load joined the load of the part, or came later
	p.interceptor.set(nil, nil)
	waitForGoroutines(t)
	if body, state := mustLoad(t, p.Cache, Loader{Load: loadFromPart(t, p.Cache, fresh)}); body != "made of new" {
		t.Fatalf("after the invalidation: got %s %q, want body %q", state, body, "made of new")
	}
}

// The composite load runs after the invalidation has stored its time and before it deletes the
// part.
func TestDependsOn_PartBeingDeletedPreventsStore(t *testing.T) {
	addr, clock := redisAddr(t), newClock()
	p, invalidating := newProcess(t, addr, clock), newProcess(t, addr, clock)
	if _, _, err := p.GetOrLoad(t.Context(), partKey, nil, Loader{TTL: time.Minute, Load: loadBody(t, "old", "tag")}); err != nil {
		t.Fatal(err)
	}
	invalidating.interceptor.set(func(step string) error {
		if step == "del" {
			expectLoad(t, p.Cache, Loader{Load: loadFromPart(t, p.Cache, unexpectedLoad(t))}, "made of old", Miss)
		}
		return nil
	}, nil)
	if n, err := invalidating.Invalidate(t.Context(), "tag"); err != nil || n != 1 {
		t.Fatalf("got %d entries removed, %v, want 1", n, err)
	}
	expectLoad(t, p.Cache, Loader{Load: loadFromPart(t, p.Cache, loadBody(t, "new", "tag"))}, "made of new", Miss)
}
